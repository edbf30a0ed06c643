#include "sampler.hpp"

#include <algorithm>
#include <cmath>

namespace mosstalk {

namespace {

void penalise(const float* logits, size_t n, const uint8_t* seen, float penalty,
              std::vector<float>& scores) {
    scores.assign(logits, logits + n);
    if (!seen || penalty == 1.0f) return;
    for (size_t i = 0; i < n; ++i)
        if (seen[i]) scores[i] = scores[i] < 0 ? scores[i] * penalty : scores[i] / penalty;
}

// The k-th largest score: ids below it are dropped, ids equal to it are kept.
float kth_largest(const std::vector<float>& scores, size_t k, std::vector<float>& sorted) {
    sorted = scores;
    std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(),
                     std::greater<float>());
    return sorted[k - 1];
}

// Drops ids before which, in falling order, more than top_p of the whole has passed.
void keep_nucleus(float top_p, double total, SamplerScratch& s) {
    s.order.clear();
    for (size_t i = 0; i < s.chances.size(); ++i)
        if (s.chances[i] > 0) s.order.push_back(static_cast<int>(i));
    std::stable_sort(s.order.begin(), s.order.end(),
                     [&](int a, int b) { return s.chances[a] > s.chances[b]; });
    double passed = 0;
    for (int id : s.order) {
        const double share = s.chances[id] / total;
        if (passed > top_p) s.chances[id] = 0;
        passed += share;
    }
}

}  // namespace

int argmax(const float* x, size_t n) {
    return static_cast<int>(std::max_element(x, x + n) - x);
}

double sampling_chances(const float* logits, size_t n, const uint8_t* seen,
                        const SamplingRow& params, SamplerScratch& s) {
    penalise(logits, n, seen, params.penalty, s.scores);
    s.chances.assign(n, 0.0);
    if (params.greedy) {
        s.chances[argmax(s.scores.data(), n)] = 1.0;
        return 1.0;
    }
    for (float& score : s.scores) score /= params.temperature;
    float least = -INFINITY;
    if (params.top_k > 0 && static_cast<size_t>(params.top_k) < n)
        least = kth_largest(s.scores, params.top_k, s.sorted);
    const float top = *std::max_element(s.scores.begin(), s.scores.end());
    double total = 0;
    for (size_t i = 0; i < n; ++i)
        if (s.scores[i] >= least)
            total += s.chances[i] = std::exp(static_cast<double>(s.scores[i] - top));
    if (0 < params.top_p && params.top_p < 1) {
        keep_nucleus(params.top_p, total, s);
        total = 0;
        for (double chance : s.chances) total += chance;
    }
    return total;
}

int sample(const float* logits, size_t n, const uint8_t* seen, const SamplingRow& params,
           float uniform, SamplerScratch& s) {
    const double total = sampling_chances(logits, n, seen, params, s);
    const double target = static_cast<double>(uniform) * total;
    double passed = 0;
    int last = 0;
    for (size_t i = 0; i < n; ++i) {
        if (s.chances[i] <= 0) continue;
        passed += s.chances[i];
        last = static_cast<int>(i);
        if (passed > target) break;
    }
    return last;
}

}  // namespace mosstalk
