// The Python module: programs, state and the thread pool. Arrays given to it are not copied and
// must outlive it; cpu/backend.py holds them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>

#include "program.hpp"

namespace nb = nanobind;
using namespace mosstalk;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatArray = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Members = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const Kernels* find_kernels(const std::string& name) {
    const Kernels* found = name.empty() ? best_kernels() : kernels_named(name.c_str());
    if (!found) throw std::invalid_argument("this processor cannot run the kernels '" + name + "'");
    return found;
}

nb::object buffer_array(nb::handle self, size_t index) {
    Program& program = nb::cast<Program&>(self);
    Buffer& b = program.buffer(index);
    const size_t shape[2] = {b.num_rows, b.width};
    if (b.ints) return nb::cast(nb::ndarray<nb::numpy, int32_t>(b.ints, 2, shape, self));
    return nb::cast(nb::ndarray<nb::numpy, float>(b.floats, 2, shape, self));
}

void add_cache(State& state, FloatArray keys, FloatArray values) {
    state.caches.push_back({keys.data(), values.data(), static_cast<int64_t>(values.shape(1)),
                            static_cast<int64_t>(values.shape(3)),
                            static_cast<int64_t>(values.shape(2))});
}

std::vector<double> chances(nb::ndarray<const float, nb::ndim<1>, nb::c_contig> logits,
                            nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> seen,
                            const std::vector<float>& p) {
    SamplerScratch scratch;
    const SamplingRow row{p[0] != 0, p[1], static_cast<int>(p[2]), p[3], p[4]};
    const double total =
        sampling_chances(logits.data(), logits.size(), seen.data(), row, scratch);
    for (double& chance : scratch.chances) chance /= total;
    return scratch.chances;
}

// Reads an array of float32, a multiple of 64 of them, with all threads: how fast is memory?
double read_all(Pool& pool, FloatArray data) {
    constexpr size_t kStep = 16384;  // values in a task
    const Kernels* kernels = best_kernels();
    std::atomic<double> total{0};
    pool.run((data.size() + kStep - 1) / kStep, [&](size_t task, int) {
        const size_t from = task * kStep;
        total += kernels->read(data.data() + from, std::min(kStep, data.size() - from));
    });
    return total;
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("kernels", [] { return std::string(best_kernels()->name); });
    m.def("kernels", [](const std::string& name) { return std::string(find_kernels(name)->name); });
    m.def("sampling_probabilities", &chances);

    nb::class_<Pool>(m, "Pool")
        .def(nb::init<int>())
        .def_prop_ro("num_threads", &Pool::num_threads)
        .def("read", &read_all, nb::call_guard<nb::gil_scoped_release>());

    nb::class_<State>(m, "State")
        .def(nb::init<>())
        .def("add_cache", &add_cache)
        .def("add_seen", [](State& state, Members members) {
            state.seen.push_back({members.data(), static_cast<int64_t>(members.shape(1))});
        });

    nb::class_<Program>(m, "Program")
        .def("__init__",
             [](Program* self, size_t max_rows, std::shared_ptr<Pool> pool,
                const std::string& kernels) {
                 new (self) Program(max_rows, std::move(pool), find_kernels(kernels));
             })
        .def("add_buffer", &Program::add_buffer)
        .def("add_weight",
             [](Program& self, Bytes data, size_t rows, size_t cols, int storage) {
                 self.add_weight({data.data(), rows, cols, data.size() / rows,
                                  static_cast<Storage>(storage)});
             })
        .def("add_op", &Program::add_op)
        .def("buffer", &buffer_array, nb::rv_policy::reference_internal)
        .def("run", &Program::run, nb::arg("rows"), nb::arg("state").none(),
             nb::call_guard<nb::gil_scoped_release>());
}
