// Formatting without a library, and files that are whole or not there.
#include "text.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "folder.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

TEST_CASE("text helpers escape what their formats need", "[calibrate]") {
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"a\"") == "\"say 'a'\"");
  CHECK(json_string("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(json_number(0.5) == "0.5");
  CHECK(json_number(1.0 / 0.0) == "null");
  CHECK(json_number(std::nan("")) == "null");
  CHECK(json_number(85520809984.0, 15) == "85520809984");
  CHECK(trimmed(" \t x y\r\n") == "x y");
  CHECK(trimmed("  ").empty());
  CHECK(lower_case("AbC-1") == "abc-1");
  CHECK(print_to_string("%d %s", 3, "x") == "3 x");
  CHECK(print_to_string("%s", std::string(5000, 'y').c_str()).size() == 5000);
}

TEST_CASE("JSON that is written is JSON, nested and empty too", "[calibrate]") {
  CHECK(JsonObject().str() == "{}");
  CHECK(json_array({}) == "[]");
  const std::string inner = JsonObject().number("n", -2.5e-7).boolean("b", false).str(1);
  const std::string text = JsonObject()
                               .text("k\"ey", "tab\there")
                               .raw("inner", inner)
                               .raw("list", json_array({"1", "\"two\"", inner}, 1))
                               .str();
  const auto json = nlohmann::json::parse(text);
  CHECK(json["k\"ey"] == "tab\there");
  CHECK(json["inner"]["n"] == -2.5e-7);
  CHECK(json["inner"]["b"] == false);
  CHECK(json["list"].size() == 3);
  CHECK(json["list"][1] == "two");
  for (int c = 1; c < 128; ++c) {
    const std::string one(1, static_cast<char>(c));
    CHECK(nlohmann::json::parse(json_string(one)) == one);
  }
}

TEST_CASE("members keep the order they were added in", "[calibrate]") {
  const std::string text = JsonObject().text("z", "1").text("a", "2").str();
  CHECK(text.find("\"z\"") < text.find("\"a\""));
}

TEST_CASE("a file is replaced whole, and a failed write leaves the old one", "[calibrate]") {
  const fixtures::Folder folder;
  const std::string path = folder.path() + "/f";
  write_file(path, "first");
  CHECK(read_text(path) == "first");
  write_file(path, "second, longer");
  CHECK(read_text(path) == "second, longer");
  CHECK(folder.names() == std::vector<std::string>{"f"});
  CHECK_THROWS_AS(write_file(folder.path() + "/none/f", "x"), servesim::InputError);
  // A folder stands where the file should go: nothing is left beside it.
  CHECK_THROWS_AS(write_file(folder.path(), "x"), servesim::InputError);
  CHECK(read_text(path) == "second, longer");
  CHECK(read_text("/no/such/file").empty());
  write_file(path, std::string_view("a\0b", 3));
  CHECK(read_text(path).size() == 3);
}
