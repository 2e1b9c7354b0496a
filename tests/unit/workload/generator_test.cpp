#include "workload/generator.hpp"

#include <fstream>
#include <sstream>
#include <unordered_set>

#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

std::string generated(const std::string& spec, std::uint64_t count, std::uint64_t seed) {
  std::ostringstream out;
  generate(load_spec(spec), count, seed, out);
  return out.str();
}

std::string shipped(const std::string& name) {
  std::ifstream file(std::string(SERVESIM_SOURCE_DIR) + "/workloads/" + name + ".jsonl");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

double mean_input(const std::vector<Request>& requests) {
  double sum = 0;
  for (const Request& request : requests) sum += static_cast<double>(request.input_tokens);
  return sum / static_cast<double>(requests.size());
}

const std::string kBlock = R"("source": "test", "kind": "assumed")";

std::string spec_text(const std::string& arrivals) {
  return "{\"description\": \"test\", \"arrivals\": {" + arrivals + ", " + kBlock +
         R"(}, "input_tokens": {"distribution": "fixed", "value": 100, )" + kBlock +
         R"(}, "output_tokens": {"distribution": "uniform", "low": 10, "high": 20, )" + kBlock +
         "}}";
}

TEST_CASE("the same spec and seed give the same bytes, another seed others") {
  for (const std::string& name : spec_names()) {
    CHECK(generated(name, 200, 7) == generated(name, 200, 7));
    CHECK(generated(name, 200, 7) != generated(name, 200, 8));
  }
}

TEST_CASE("the shipped traces are what their first line says") {
  const std::vector<std::pair<std::string, std::uint64_t>> traces{
      {"chat", 4000}, {"code", 3000}, {"long-context", 2000}, {"agentic", 2000}};
  for (const auto& [name, count] : traces) {
    const std::string text = shipped(name);
    CHECK(text.starts_with("# simulate generate --spec " + name + " --seed 1 --num-prompts " +
                           std::to_string(count) + "\n"));
    CHECK((generated(name, count, 1) == text));
    CHECK(text.size() < 1'500'000);
    CHECK(detected(text) == "servesim");
    CHECK(requests_of(text).size() == count);
  }
}

TEST_CASE("presets have the statistics they are made from") {
  const auto chat = requests_of(generated("chat", 40'000, 2));
  CHECK(mean_input(chat) == Approx(1154.7).epsilon(0.03));
  CHECK(static_cast<double>(chat.size()) / chat.back().arrival.seconds() ==
        Approx(5.53).epsilon(0.03));
  CHECK(mean_input(requests_of(generated("code", 40'000, 2))) == Approx(2047.8).epsilon(0.03));
  CHECK(mean_input(requests_of(generated("long-context", 10'000, 2))) ==
        Approx(12'035).epsilon(0.05));
}

TEST_CASE("long-context prompts share prefixes") {
  std::unordered_set<std::uint64_t> seen;
  std::size_t shared = 0;
  const auto requests = requests_of(generated("long-context", 3000, 3));
  for (const Request& request : requests) {
    REQUIRE(request.hash_ids.front() == 0);
    if (request.hash_ids.size() > 1 && seen.contains(request.hash_ids[1])) ++shared;
    seen.insert(request.hash_ids.begin(), request.hash_ids.end());
  }
  CHECK(static_cast<double>(shared) / 3000 == Approx(0.37).margin(0.05));
}

TEST_CASE("agentic sessions grow in closed loop below the limit") {
  const auto requests = requests_of(generated("agentic", 2000, 4));
  std::size_t grown = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(requests[i].input_tokens + requests[i].output_tokens < 131'072);
    if (!requests[i].closed_loop) continue;
    REQUIRE(requests[i].session == requests[i - 1].session);
    if (requests[i].input_tokens > requests[i - 1].input_tokens) ++grown;
  }
  CHECK(grown > 1800);
}

TEST_CASE("arrival processes") {
  const auto arrivals = [](const std::string& text) {
    const TempFile file(spec_text(text), "spec.json");
    return requests_of(generated(file.path(), 100, 1));
  };
  CHECK(arrivals(R"("process": "constant", "rate_per_s": 4)")[3].arrival.seconds() == 1.0);
  CHECK(arrivals(R"("process": "all-at-once")")[99].arrival.ns() == 0);
  const auto poisson = arrivals(R"("process": "poisson", "rate_per_s": 4)");
  CHECK(poisson[99].arrival > poisson[0].arrival);
  CHECK(poisson[5].input_tokens == 100);
  CHECK(poisson[5].output_tokens >= 10);
  CHECK(poisson[5].output_tokens <= 20);
}

TEST_CASE("distributions have their quantiles") {
  CHECK(Distribution::lognormal(50, 2).at_normal(0) == Approx(50));
  CHECK(Distribution::lognormal(50, 2).at_normal(1) == Approx(50 * std::exp(2.0)));
  CHECK(Distribution::uniform(10, 20).at_normal(0) == Approx(15));
  const auto table = Distribution::quantiles({0, 0.5, 1}, {1, 10, 100});
  CHECK(table.at_normal(0) == Approx(10));
  CHECK(table.at_normal(-40) == Approx(1));
  CHECK(table.at_normal(40) == Approx(100));
}

TEST_CASE("broken specs are refused by name") {
  const auto message = [](const std::string& text) {
    const TempFile file(text, "spec.json");
    return error_of([&] { load_spec(file.path()); });
  };
  const std::string good = spec_text(R"("process": "all-at-once")");
  CHECK(message(good) == "no error");
  CHECK(contains(message(spec_text(R"("process": "posson", "rate_per_s": 4)")),
                 "did you mean 'poisson'?"));
  CHECK(contains(message(spec_text(R"("process": "poisson", "rate_per_s": -4)")),
                 "/arrivals/rate_per_s"));
  CHECK(contains(message(spec_text(R"("process": "all-at-once", "rat": 4)")), "/arrivals/rat"));
  std::string no_source = good;
  no_source.replace(no_source.find("\"source\""), 8, "\"sauce\"");
  CHECK(contains(message(no_source), "/arrivals/source"));
  CHECK(contains(message("{}"), "/description"));
  CHECK(contains(error_of([] { load_spec("chatt"); }), "unknown workload spec 'chatt'"));
}

}  // namespace
}  // namespace servesim::test
