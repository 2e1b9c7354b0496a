/// Are clashing output paths found, however they are spelt?
#include <filesystem>
#include <fstream>

#include "cli/outputs.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace servesim {

TEST_CASE("outputs that are one file, or an input") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string input = (folder / "servesim_input.jsonl").string();
  std::ofstream(input) << "{}";
  const std::string out = (folder / "servesim_out.csv").string();
  CHECK_NOTHROW(check_distinct({out, "", ""}, {input}));
  CHECK_NOTHROW(check_distinct({"-", out, ""}, {"-"}));
  CHECK_NOTHROW(check_distinct({"/dev/null", "/dev/null", ""}, {}));
  CHECK_THROWS_AS(check_distinct({out, out, ""}, {}), InputError);
  CHECK_THROWS_AS(check_distinct({out, "", (folder / "." / "servesim_out.csv").string()}, {}),
                  InputError);
  CHECK_THROWS_AS(check_distinct({"", "", input}, {input}), InputError);
  std::filesystem::remove(input);
}

}  // namespace servesim
