// A pool of threads that share the tasks of one job at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mosstalk {

// Each thread takes the tasks of its own share one by one, in order, then the last ones of other
// shares, so that a thread whose core is busy with something else does fewer. Waiting threads spin
// for some tens of microseconds (the gap between two ops of a program) and then sleep.
class Pool {
  public:
    explicit Pool(int num_threads);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

    // Calls task(index, thread) for every index in [0, count), on the caller (thread 0) and the
    // pool's threads; returns when all are done. Tasks must not throw. Callers take turns.
    // The share of thread t starts at task count * t / num_threads().
    void run(size_t count, const std::function<void(size_t, int)>& task);

  private:
    void work(int thread);
    void stop();
    void take_tasks(int thread);

    std::mutex turn_;
    std::vector<std::thread> threads_;
    const std::function<void(size_t, int)>* task_ = nullptr;
    // The first task not yet taken in the upper half, the end of the share in the lower half. A
    // thread that is late for a round finds all shares used up, or takes part in the next round.
    struct alignas(64) Share {
        std::atomic<uint64_t> open{0};
    };
    std::vector<Share> shares_;
    alignas(64) std::atomic<uint32_t> left_{0};   // tasks of this round not finished
    alignas(64) std::atomic<uint32_t> round_{0};  // what the threads wait on
    std::atomic<bool> stop_{false};
};

}  // namespace mosstalk
