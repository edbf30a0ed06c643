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

// Tasks are taken one by one from a counter, so that a thread whose core is busy with something
// else takes fewer. Waiting threads spin for some tens of microseconds (the gap between two ops
// of a program) and then sleep.
class Pool {
  public:
    explicit Pool(int num_threads);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

    // Calls task(index, thread) for every index in [0, count), on the caller (thread 0) and the
    // pool's threads; returns when all are done. Tasks must not throw. Callers take turns.
    void run(size_t count, const std::function<void(size_t, int)>& task);

  private:
    void work(int thread);
    void stop();
    void take_tasks(uint64_t round, int thread);

    std::mutex turn_;
    std::vector<std::thread> threads_;
    const std::function<void(size_t, int)>* task_ = nullptr;
    uint32_t count_ = 0;
    // The round's number in the upper half, the tasks not yet taken in the lower half: a thread
    // that is late for a round finds it used up, or a new one, but never a mix of both.
    alignas(64) std::atomic<uint64_t> open_{0};
    alignas(64) std::atomic<uint32_t> left_{0};   // tasks of this round not finished
    alignas(64) std::atomic<uint32_t> round_{0};  // what the threads wait on
    std::atomic<bool> stop_{false};
};

}  // namespace mosstalk
