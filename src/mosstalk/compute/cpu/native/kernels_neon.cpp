// The kernels for NEON.
#include "kernels.hpp"

#if defined(MOSSTALK_ARM)
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "vec_neon.hpp"

namespace mosstalk {
namespace neon {
#include "kernels_impl.hpp"
}  // namespace neon

using namespace neon;
const Kernels kNeonKernels = MOSSTALK_KERNELS("neon");

}  // namespace mosstalk
#endif
