#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "validation/scatter_plot.hpp"
#include "validation/validation.hpp"

using namespace servesim;

namespace {

ValidationReport sample() {
  ValidationReport report;
  report.compare("steps", "batch 1", "step (ms)", 10, 10.1, 0.02);
  report.compare("steps", "batch 2", "step (ms)", 10, 11, 0.02);
  report.compare("serving", "run", "TTFT p90 (ms)", 50, 80, std::nullopt);
  report.summarise("offline", "throughput", "median |error|", 0.1, 0.15);
  return report;
}

}  // namespace

TEST_CASE("bars are counted, errors are relative and signed", "[validation]") {
  const ValidationReport report = sample();
  CHECK(report.with_bar() == 3);
  CHECK(report.met() == 2);
  CHECK(report.checks[1].error == Approx(0.1));
  CHECK_FALSE(report.checks[1].met());
  CHECK(report.checks[2].met());
}

TEST_CASE("the Markdown names the bars not met first", "[validation]") {
  const std::string text = validation_markdown(sample());
  CHECK(text.find("2 of 3 bars are met") != std::string::npos);
  CHECK(text.find("batch 2") < text.find("batch 1"));
  CHECK(text.find("**not met**") != std::string::npos);
}

TEST_CASE("the JSON holds every check", "[validation]") {
  const auto json = nlohmann::json::parse(validation_json(sample()));
  CHECK(json.at("schema") == "servesim/validation/v1");
  CHECK(json.at("checks").size() == 4);
  CHECK(json.at("checks")[0].at("met") == true);
  CHECK_FALSE(json.at("checks")[2].contains("bar"));
}

TEST_CASE("a report is written to a folder", "[validation]") {
  const auto folder = std::filesystem::temp_directory_path() / "servesim_validation_test";
  write_validation(sample(), folder.string());
  for (const char* name : {"README.md", "validation.json", "steps.svg", "serving.svg"}) {
    CHECK(std::filesystem::file_size(folder / name) > 0);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a report that cannot be written whole leaves the one that was there", "[validation]") {
  const auto folder = std::filesystem::temp_directory_path() / "servesim_validation_old";
  std::filesystem::create_directories(folder / "steps.svg");  // in the way of the plot
  std::ofstream(folder / "README.md") << "old";
  CHECK_THROWS_AS(write_validation(sample(), folder.string()), InputError);
  CHECK(std::filesystem::file_size(folder / "README.md") == 3);
  const std::filesystem::directory_iterator entries(folder);
  CHECK(std::distance(begin(entries), end(entries)) == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("plots leave out what has no logarithm", "[validation]") {
  CHECK(scatter_svg({{"s", "a", 0, 1}, {"other", "a", 1, 1}}, "s").empty());
  CHECK(scatter_svg({{"s", "a", 1, 2}}, "s").find("<circle") != std::string::npos);
}

TEST_CASE("folders without measurements and unknown sections are refused", "[validation]") {
  CHECK_THROWS_AS(run_validation("/nonexistent", {}), InputError);
  const auto empty = std::filesystem::temp_directory_path() / "servesim_validation_empty";
  std::filesystem::create_directories(empty);
  CHECK_THROWS_AS(run_validation(empty.string(), {}), InputError);
  ValidationOptions options;
  options.sections = {"kernel"};
  CHECK_THROWS_AS(run_validation(empty.string(), options), InputError);
  std::filesystem::remove_all(empty);
}
