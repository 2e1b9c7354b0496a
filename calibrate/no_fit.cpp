// Stands in for the fit where the libraries it needs were not found.
#include "core/error.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {

bool has_fit() {
  return false;
}

void require_datasheet(const Environment&, const std::string&) {}

[[noreturn]] static void refuse(const std::string& verb) {
  throw InputError(
      verb +
      ": this calibrate was built without nlohmann_json, fmt and xxHash (Debian: "
      "nlohmann-json3-dev, libxxhash-dev, "
      "libfmt-dev), so it measures only. Install them and build again, or copy the measured folder "
      "to a machine that has them and run there: calibrate fit --timings DIR --out profile.json");
}

void run_fit(const Flags&) {
  refuse("fit");
}
void run_derive(const Flags&) {
  refuse("derive");
}
int run_check(const Flags&) {
  refuse("check");
}
void fit_measurement(const std::string&, const std::string&, const std::string&) {
  refuse("fit");
}

}  // namespace servesim::calibrate
