/// May a GPU be measured, and with how much of its memory? Decided from plain numbers, so that it
/// is tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace servesim::calibrate::cuda {

/// What the runtime says before any GPU is used.
struct Findings {
  int driver = 0, runtime = 0;  ///< CUDA versions; driver 0: there is none
  bool driver_too_old = false;
  int devices = 0;
};

/// Throws InputError, with what to do, when GPU `device` cannot be opened.
void require_device(const Findings& found, int device);

/// Throws InputError for GPUs before compute capability 8.0.
void require_capability(const std::string& name, int major, int minor);

/// Bytes of one region of operands: seven share three quarters of what is free, each at least four
/// times the L2 (so that rotating operands leave it) and 256 MiB, and at most 2 GiB where that is
/// enough. Throws InputError when too little is free.
std::int64_t region_bytes(double free_bytes, double l2_bytes);

}  // namespace servesim::calibrate::cuda
