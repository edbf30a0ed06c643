// The kernels for AVX2.
#include "kernels.hpp"

#if defined(MOSSTALK_X86)
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "vec_avx2.hpp"

namespace mosstalk {
namespace avx2 {
#include "kernels_impl.hpp"
}  // namespace avx2

using namespace avx2;
const Kernels kAvx2Kernels = MOSSTALK_KERNELS("avx2");

}  // namespace mosstalk
#endif
