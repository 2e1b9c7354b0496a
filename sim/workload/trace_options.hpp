/// How a trace is to be read where its content does not say, or says it wrongly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace servesim {

/// The unit of a trace's numeric times. kAuto: the one its format has.
enum class TimeUnit { kAuto, kSeconds, kMilliseconds, kMicroseconds, kNanoseconds };

/// "auto", "s", "ms", "us" or "ns". Throws InputError for anything else.
TimeUnit parse_time_unit(std::string_view text);

struct TraceOptions {
  std::string format = "auto";  ///< a name of trace_formats(), or "auto": told by the content
  TimeUnit time_unit = TimeUnit::kAuto;
  std::int64_t hash_block_size = 0;  ///< tokens per hash id; 0: as the format says
  /// Parsed requests are kept for the next run when they fit in so many bytes.
  std::size_t cache_bytes = std::size_t{128} << 20;

  /// Nanoseconds per unit of the trace's times, `format_ns` when the unit is kAuto.
  std::int64_t unit_ns(std::int64_t format_ns) const;
  std::int64_t block_or(std::int64_t format_block) const {
    return hash_block_size > 0 ? hash_block_size : format_block;
  }
};

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kMicrosecondNs = 1'000;

}  // namespace servesim
