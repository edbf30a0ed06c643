// The kernels for any processor.
#include "kernels.hpp"

#include <cmath>
#include <cstring>
#include <initializer_list>

#include "vec_plain.hpp"

namespace mosstalk {
namespace plain {
#include "kernels_impl.hpp"
}  // namespace plain

using namespace plain;
const Kernels kPlainKernels = MOSSTALK_KERNELS("plain");

}  // namespace mosstalk
