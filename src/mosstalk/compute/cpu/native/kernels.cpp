// Choosing the kernels at run time. This file is compiled for the plainest processor.
#include "kernels.hpp"

#include <cstring>

namespace mosstalk {

namespace {

bool runs(const Kernels& kernels) {
#if defined(MOSSTALK_X86) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    if (&kernels == &kAvx512Kernels)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("f16c");
    if (&kernels == &kAvx2Kernels)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("f16c");
#endif
    (void)kernels;
    return true;
}

const Kernels* const kTables[] = {
#if defined(MOSSTALK_X86)
    &kAvx512Kernels, &kAvx2Kernels,
#elif defined(MOSSTALK_ARM)
    &kNeonKernels,
#endif
    &kPlainKernels};

}  // namespace

const Kernels* best_kernels() {
    for (const Kernels* table : kTables)
        if (runs(*table)) return table;
    return &kPlainKernels;
}

const Kernels* kernels_named(const char* name) {
    for (const Kernels* table : kTables)
        if (!std::strcmp(table->name, name) && runs(*table)) return table;
    return nullptr;
}

}  // namespace mosstalk
