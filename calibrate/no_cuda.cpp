// Stands in for the CUDA backend where no CUDA toolkit was found.
#include "backend.hpp"
#include "core/error.hpp"

namespace servesim::calibrate {

std::unique_ptr<Backend> make_cuda_backend(int, std::uint64_t) {
  throw InputError(
      "this calibrate was built without the CUDA toolkit: configure it again where nvcc is found, "
      "or "
      "measure this machine's cores with --backend cpu");
}

}  // namespace servesim::calibrate
