/// The short cut of the Mooncake reader takes exactly the rows it is made for.
#include <string>

#include "support/catch.hpp"
#include "workload/readers/plain_row.hpp"

using namespace servesim;

namespace {

bool takes(const std::string& line) {
  PlainRow row;
  std::vector<std::uint64_t> ids;
  return read_plain_row(line, row, ids);
}

}  // namespace

TEST_CASE("a plain row is read as it stands") {
  PlainRow row;
  std::vector<std::uint64_t> ids{9};
  REQUIRE(read_plain_row(
      R"({"timestamp": 27482, "input_length": 6955, "output_length": 0, "hash_ids": [46, 0,2354]})",
      row, ids));
  CHECK(row.timestamp == 27482);
  CHECK(row.input_length == 6955);
  CHECK(row.output_length == 0);
  CHECK(row.has_hash_ids);
  CHECK(ids == std::vector<std::uint64_t>{46, 0, 2354});
  CHECK(takes(R"({"output_length":1,"timestamp":2,"input_length":3})"));
}

TEST_CASE("everything else is left to the general parser") {
  const std::string good =
      R"({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [4]})";
  REQUIRE(takes(good));
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(takes(good.substr(0, length)));
  CHECK_FALSE(takes(good + " "));
  CHECK_FALSE(takes(good + "}"));
  CHECK_FALSE(takes(R"({"timestamp": 1.5, "input_length": 2, "output_length": 3})"));
  CHECK_FALSE(takes(R"({"timestamp": -1, "input_length": 2, "output_length": 3})"));
  CHECK_FALSE(takes(R"({"timestamp": 01, "input_length": 2, "output_length": 3})"));
  CHECK_FALSE(takes(R"({"timestamp": 1, "input_length": 1000000000000000, "output_length": 3})"));
  CHECK_FALSE(takes(R"({"timestamp": 1, "timestamp": 1, "input_length": 2, "output_length": 3})"));
  CHECK_FALSE(takes(R"({"timestamp": 1, "input_length": 2})"));
  CHECK_FALSE(takes(R"({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": []})"));
  CHECK_FALSE(
      takes(R"({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1,]})"));
  CHECK_FALSE(takes(R"({"timestamp": 1, "input_length": 2, "output_length": 3, "priority": 1})"));
  CHECK_FALSE(takes(R"({"timestamp": "1", "input_length": 2, "output_length": 3})"));
}
