#include "pool.hpp"

#include <chrono>

#if defined(MOSSTALK_X86)
#include <immintrin.h>
#endif

namespace mosstalk {

namespace {

void pause() {
#if defined(MOSSTALK_X86)
    _mm_pause();
#elif defined(MOSSTALK_ARM) && defined(__GNUC__)
    asm volatile("yield");
#endif
}

constexpr auto kSpin = std::chrono::microseconds(60);

// Until `value` is no longer `old`: spin, then sleep.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
        for (int i = 0; i < 32; ++i) {
            if (value.load(std::memory_order_acquire) != old) return;
            pause();
        }
    } while (std::chrono::steady_clock::now() < until);
    while (value.load(std::memory_order_acquire) == old)
        value.wait(old, std::memory_order_acquire);
}

}  // namespace

Pool::Pool(int num_threads) : shares_(num_threads) {
    try {
        for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
    } catch (...) {  // the system has no more threads
        stop();
        throw;
    }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
    stop_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (auto& thread : threads_) thread.join();
}

void Pool::run(size_t count, const std::function<void(size_t, int)>& task) {
    if (threads_.empty() || count <= 1) {
        for (size_t i = 0; i < count; ++i) task(i, 0);
        return;
    }
    const std::lock_guard<std::mutex> turn(turn_);
    task_ = &task;
    left_.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
    for (size_t t = 0; t < shares_.size(); ++t) {
        const uint64_t first = count * t / shares_.size(), end = count * (t + 1) / shares_.size();
        shares_[t].open.store(first << 32 | end, std::memory_order_release);
    }
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    take_tasks(0);
    for (uint32_t left; (left = left_.load(std::memory_order_acquire));) wait_while(left_, left);
}

void Pool::take_tasks(int thread) {
    for (size_t i = 0; i < shares_.size(); ++i) {  // its own first
        std::atomic<uint64_t>& share = shares_[(thread + i) % shares_.size()].open;
        uint64_t open = share.load(std::memory_order_acquire);
        while (open >> 32 < (open & 0xffffffffu)) {
            const uint64_t rest = i ? open - 1 : open + (uint64_t{1} << 32);
            if (!share.compare_exchange_weak(open, rest, std::memory_order_acq_rel)) continue;
            // A task is taken: until it is done the round cannot end, and task_ holds.
            (*task_)(i ? (open & 0xffffffffu) - 1 : open >> 32, thread);
            if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
            open = share.load(std::memory_order_acquire);
        }
    }
}

void Pool::work(int thread) {
    uint32_t seen = 0;
    while (true) {
        wait_while(round_, seen);
        seen = round_.load(std::memory_order_acquire);
        if (stop_.load()) return;
        take_tasks(thread);
    }
}

}  // namespace mosstalk
