/// Do per-request records hold what the contract says, whatever the ids look like?
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "records.hpp"
#include "report/request_writer.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

std::string path_of(const std::string& name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string written(const std::string& name, const std::vector<RequestRecord>& records) {
  const std::string path = path_of(name);
  RequestWriter writer(path);
  for (const RequestRecord& record : records) writer.on_request(record);
  writer.commit();
  std::string text = read_all(path);
  std::filesystem::remove(path);
  return text;
}

std::vector<RequestRecord> samples() {
  RequestRecord done = testing::completed(0, 1.5, 2, 12.25, 112.25, 11);
  done.id = "a,\"b\"";
  done.session = "s1";
  done.prefix_hit_tokens = 32;
  done.preemptions = 2;
  return {done, testing::not_completed(7, 3, RequestStatus::kRejected, "zero output tokens"),
          testing::not_completed(8, 4, RequestStatus::kUnfinished, "interrupted")};
}

}  // namespace

TEST_CASE("records as CSV") {
  CHECK(written("servesim_records.csv", samples()) ==
        "index,request_id,session_id,arrival_ms,input_tokens,output_tokens,status,reason,replica,"
        "queue_ms,ttft_ms,tpot_ms,e2el_ms,prefix_hit_tokens,preemptions\n"
        "0,\"a,\"\"b\"\"\",s1,1.500000,100,11,completed,,0,0.500000,10.750000,10.000000,110.750000,"
        "32,2\n"
        "7,7,,3.000000,7,9,rejected,zero output tokens,,,,,,0,0\n"
        "8,8,,4.000000,7,9,unfinished,interrupted,,,,,,0,0\n");
}

TEST_CASE("records as JSON lines") {
  std::stringstream lines(written("servesim_records.jsonl", samples()));
  std::string line;
  REQUIRE(std::getline(lines, line));
  const auto first = nlohmann::json::parse(line);
  CHECK(first.size() == 15);
  CHECK(first["request_id"] == "a,\"b\"");
  CHECK(first["session_id"] == "s1");
  CHECK(first["ttft_ms"] == 10.75);
  CHECK(first["tpot_ms"] == 10.0);
  CHECK(first["reason"].is_null());
  REQUIRE(std::getline(lines, line));
  const auto second = nlohmann::json::parse(line);
  CHECK(second["request_id"] == "7");
  CHECK(second["status"] == "rejected");
  CHECK(second["reason"] == "zero output tokens");
  CHECK(second["e2el_ms"].is_null());
  CHECK(second["replica"].is_null());
}

TEST_CASE("the name of a record file chooses its format") {
  CHECK_THROWS_AS(RequestWriter(path_of("records.txt")), InputError);
}

}  // namespace servesim
