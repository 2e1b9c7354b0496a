/// Reading, and simulating against reading.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "benchmarks.hpp"
#include "measure.hpp"
#include "report/request_writer.hpp"
#include "synthetic.hpp"
#include "workload/trace_format.hpp"
#include "workload/trace_source.hpp"

namespace servesim::bench {
namespace {

constexpr int kCopies = 50;

/// The trace `kCopies` times over, one copy after the other.
std::string write_copies(const std::string& azure) {
  const TraceSource source(azure);
  const SimTime span =
      source.summary().last_arrival - source.summary().first_arrival + SimTime::from_ms(100);
  const std::string path =
      (std::filesystem::temp_directory_path() / "servesim_bench_azure50.csv").string();
  std::ofstream out(path);
  out << "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
  for (int copy = 0; copy < kCopies; ++copy) {
    const auto reader = source.open();
    Request request;
    while (reader->next(request)) {
      const std::int64_t ticks = (request.arrival + span * copy).ns() / 100;
      const std::int64_t seconds = ticks / 10'000'000;
      out << fmt::format("2023-11-{:02} {:02}:{:02}:{:02}.{:07},{},{}\r\n", 16 + seconds / 86400,
                         seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, ticks % 10'000'000,
                         request.input_tokens, request.output_tokens);
    }
  }
  return path;
}

std::int64_t read_all(const std::string& path) {
  const auto file = InputFile::open(path);
  const auto reader = choose_format(file, {}).make(file, {});
  Request request;
  std::int64_t tokens = 0;
  while (reader->next(request)) tokens += request.input_tokens + request.output_tokens;
  return tokens;
}

/// What one writes first.
std::int64_t read_with_iostream(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::int64_t tokens = 0;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::tm date{};
    double fraction = 0;
    char comma = 0;
    std::int64_t input = 0;
    std::int64_t output = 0;
    fields >> std::get_time(&date, "%Y-%m-%d %H:%M:%S") >> fraction >> comma >> input >> comma >>
        output;
    if (!fields || input < 0 || output < 0) throw std::runtime_error("bad row");
    tokens += input + output;
  }
  return tokens;
}

/// What one writes next: std::from_chars over the mapped bytes, every field checked.
std::int64_t read_with_from_chars(const std::string& path) {
  const auto file = InputFile::open(path);
  const char* at = file->bytes().data();
  const char* const end = at + file->bytes().size();
  const auto number = [&](char until, std::int64_t high) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || stop == end || *stop != until || value < 0 || value > high) {
      throw std::runtime_error("bad field");
    }
    at = stop + 1;
    return value;
  };
  at = static_cast<const char*>(std::memchr(at, '\n', file->bytes().size())) + 1;
  std::int64_t tokens = 0;
  while (at < end) {
    number('-', 9999);
    number('-', 12);
    number(' ', 31);
    number(':', 23);
    number(':', 59);
    number('.', 60);
    number(',', 9'999'999);
    tokens += number(',', INT32_MAX) + number('\r', INT32_MAX);
    if (*at++ != '\n') throw std::runtime_error("bad end of line");
  }
  return tokens;
}

std::int64_t read_with_nlohmann(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::int64_t tokens = 0;
  while (std::getline(in, line)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    tokens +=
        row.at("input_length").get<std::int64_t>() + row.at("output_length").get<std::int64_t>();
  }
  return tokens;
}

void require_equal(std::int64_t a, std::int64_t b) {
  if (a != b) throw std::logic_error("two readers disagree");
}

void reading(const std::string& azure50, const std::string& mooncake) {
  std::int64_t ours = 0;
  std::int64_t theirs = 0;
  std::vector<Alternative> csv{{"servesim", [&] { ours = read_all(azure50); }},
                               {"from_chars", [&] { theirs = read_with_from_chars(azure50); }}};
  race(csv, 5);
  require_equal(ours, theirs);
  std::vector<Alternative> slow{{"iostream", [&] { theirs = read_with_iostream(azure50); }}};
  race(slow, 1);
  require_equal(ours, theirs);
  std::vector<Alternative> json{{"servesim", [&] { ours = read_all(mooncake); }},
                                {"nlohmann", [&] { theirs = read_with_nlohmann(mooncake); }}};
  race(json, 5);
  require_equal(ours, theirs);
  print("Reading with validation",
        {figure("Azure, ns per row", csv[0].seconds / (19366.0 * kCopies) * 1e9, "ns"),
         ratio("iostream against the Azure reader", slow[0].seconds / csv[0].seconds, 10, 0),
         ratio("the Azure reader against mmap and from_chars", csv[0].seconds / csv[1].seconds, 0,
               1.5),
         figure("Mooncake, ns per row", json[0].seconds / 12031.0 * 1e9, "ns"),
         ratio("nlohmann/json against the Mooncake reader", json[1].seconds / json[0].seconds, 6,
               0)});
}

void simulating(const std::string& azure50) {
  const EngineSetup setup;
  const std::string rows =
      (std::filesystem::temp_directory_path() / "servesim_bench_requests.csv").string();
  std::int64_t steps = 0;
  const TraceSource source(azure50);
  const auto run = [&](Observer& observer) {
    steps = run_engine(setup, *source.open(), observer)[0].steps;
  };
  std::vector<Alternative> jobs{{"read", [&] { read_all(azure50); }},
                                {"simulate",
                                 [&] {
                                   CountingObserver observer;
                                   run(observer);
                                 }},
                                {"simulate and write", [&] {
                                   RequestWriter writer(rows);
                                   run(writer);
                                   writer.commit();
                                 }}};
  race(jobs, 3);
  std::filesystem::remove(rows);
  const double requests = 19366.0 * kCopies;
  print(
      "50 copies of the Azure conversation trace, linear step time",
      {figure("requests per second", requests / jobs[1].seconds, "1/s"),
       figure("ns per request", jobs[1].seconds / requests * 1e9, "ns"),
       figure("ns per step", jobs[1].seconds / static_cast<double>(steps) * 1e9, "ns"),
       ratio("simulating against reading with validation", jobs[1].seconds / jobs[0].seconds, 0, 6),
       ratio("with per-request CSV against without", jobs[2].seconds / jobs[1].seconds, 0, 2),
       figure("peak memory of this process", static_cast<double>(peak_rss_bytes()) / 1e6, "MB")});
}

}  // namespace

void run_trace_benchmarks(const std::string& shared) {
  const std::string azure50 =
      write_copies(shared + "/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv");
  simulating(azure50);
  reading(azure50, shared + "/traces/mooncake-fast25/conversation_trace.jsonl");
  std::filesystem::remove(azure50);
}

}  // namespace servesim::bench
