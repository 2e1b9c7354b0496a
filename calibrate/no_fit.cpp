// Stands in for the fit where the libraries it needs were not found.
#include "core/error.hpp"
#include "verbs.hpp"

namespace servesim::calibrate {

bool has_fit() {
  return false;
}

void require_fit(const std::string& verb) {
  throw InputError(
      verb +
      ": this calibrate was built without nlohmann_json and fmt (Debian: nlohmann-json3-dev, "
      "libfmt-dev), so it measures only. Install them and build again, or copy the measured folder "
      "to "
      "a machine that has them and run there: calibrate fit --timings DIR --out profile.json");
}

void run_fit(const Flags&) {
  require_fit("fit");
}
void run_derive(const Flags&) {
  require_fit("derive");
}
int run_check(const Flags&) {
  require_fit("check");
  return 2;
}
void fit_measurement(const std::string&, const std::string&, const std::string&) {
  require_fit("fit");
}

}  // namespace servesim::calibrate
