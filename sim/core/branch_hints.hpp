/// Hints for the compiler.
///
/// What a request takes to simulate is a few thousand instructions of straight code, as much as the
/// first-level instruction cache holds. What most requests do not run through is therefore placed
/// out of their way: behind rarely(), or in a function that is not inlined ([[gnu::noinline]]).
#pragma once

namespace servesim {

/// `condition`, which hardly ever holds.
constexpr bool rarely(bool condition) {
  return __builtin_expect(static_cast<long>(condition), 0L) != 0;
}

/// `condition`, which nearly always holds.
constexpr bool mostly(bool condition) {
  return __builtin_expect(static_cast<long>(condition), 1L) != 0;
}

}  // namespace servesim
