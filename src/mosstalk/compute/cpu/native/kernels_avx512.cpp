// The kernels for AVX-512.
#include "kernels.hpp"

#if defined(MOSSTALK_X86)
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "vec_avx512.hpp"

namespace mosstalk {
namespace avx512 {
#include "kernels_impl.hpp"
}  // namespace avx512

using namespace avx512;
const Kernels kAvx512Kernels = MOSSTALK_KERNELS("avx512");

}  // namespace mosstalk
#endif
