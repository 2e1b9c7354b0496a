/// First fit against the obvious way to do it: an array of slots, searched from the front.
#include <random>
#include <vector>

#include "kv/region_space.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

class SlotArray {
 public:
  explicit SlotArray(std::int64_t slots) : taken_(static_cast<std::size_t>(slots), false) {}

  std::optional<std::int64_t> place(std::int64_t size) {
    std::int64_t run = 0;
    for (std::size_t at = 0; at < taken_.size(); ++at) {
      run = taken_[at] ? 0 : run + 1;
      if (run < size) continue;
      const std::int64_t begin = static_cast<std::int64_t>(at) + 1 - size;
      set({begin, size}, true);
      return begin;
    }
    return std::nullopt;
  }
  void set(const Region& region, bool taken) {
    for (std::int64_t at = region.begin; at < region.end(); ++at) {
      taken_[static_cast<std::size_t>(at)] = taken;
    }
  }
  /// Slots in free runs shorter than `size`.
  std::int64_t unusable_for(std::int64_t size) const {
    std::int64_t unusable = 0;
    std::int64_t run = 0;
    const auto close = [&] {
      unusable += run < size ? run : 0;
      run = 0;
    };
    for (const bool taken : taken_) {
      if (taken) {
        close();
      } else {
        ++run;
      }
    }
    close();
    return unusable;
  }

 private:
  std::vector<bool> taken_;
};

}  // namespace

TEST_CASE("first fit places every region where a search from the front does", "[property]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 engine(seed);
    const auto between = [&engine](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
    };
    const std::int64_t slots = between(1, 300);
    RegionSpace space(slots);
    SlotArray array(slots);
    std::vector<Region> placed;
    for (int step = 0; step < 200; ++step) {
      if (between(0, 99) < 55 || placed.empty()) {
        const std::int64_t size = between(1, 1 + slots / between(1, 8));
        const std::optional<Region> region = space.place(size);
        const std::optional<std::int64_t> expected = array.place(size);
        INFO("seed " << seed << " step " << step);
        REQUIRE(region.has_value() == expected.has_value());
        if (!region) continue;
        REQUIRE(region->begin == *expected);
        placed.push_back(*region);
      } else {
        const auto at = placed.begin() + between(0, std::ssize(placed) - 1);
        space.release(*at);
        array.set(*at, false);
        placed.erase(at);
      }
      const std::int64_t size = between(1, slots);
      REQUIRE(space.unusable_for(size) == array.unusable_for(size));
      REQUIRE(space.unusable_for(slots + 1) == space.free());
      REQUIRE((space.largest_hole() >= size) == (space.unusable_for(size) < space.free()));
      space.check_integrity();
    }
    for (const Region& region : placed) space.release(region);
    REQUIRE(space.largest_hole() == slots);  // everything coalesces again
  }
}
