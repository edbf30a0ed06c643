// Choosing one id from logits; the rules are those of compute/sampling.py.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mosstalk {

struct SamplingRow {  // one row of a Sample op's parameters
    bool greedy;
    float temperature;
    int top_k;  // 0: no limit
    float top_p;
    float penalty;
};

struct SamplerScratch {
    std::vector<float> scores, sorted;
    std::vector<double> chances;
    std::vector<int> order;
};

// Probabilities of the ids in scratch.chances; returns their sum (not normalised).
double sampling_chances(const float* logits, size_t n, const uint8_t* seen,
                        const SamplingRow& params, SamplerScratch& scratch);

// The chosen id; `seen` (may be null) is read.
int sample(const float* logits, size_t n, const uint8_t* seen, const SamplingRow& params,
           float uniform, SamplerScratch& scratch);

int argmax(const float* x, size_t n);

}  // namespace mosstalk
