// All kernels, written over `Vec`; included once for each instruction set, inside its namespace.
// Order of every sum is fixed by the two numbers it belongs to, never by the tile around it.

namespace {

// Not std::min and std::max: an inline function shared by all translation units could be linked
// in the form compiled for the largest instruction set.
template <class T>
inline T smaller(T a, T b) {
    return b < a ? b : a;
}
template <class T>
inline T larger(T a, T b) {
    return a < b ? b : a;
}

#include "kernels_linear.hpp"
#include "kernels_rows.hpp"
#include "kernels_attention.hpp"

}  // namespace

#define MOSSTALK_KERNELS(NAME)                                                              \
    {                                                                                       \
        NAME, linear, attention, layer_norm, rms_norm, gelu_tanh, gelu_erf, silu_gate,      \
            add_scaled, unpack_row, read, Vec::kTileRows                                    \
    }
