#include "cost/csv_rows.hpp"

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "cost/measured_kernels.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / "servesim_csv_rows_test.csv").string()) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string failure(const std::string& text) {
  const TemporaryFile file(text);
  try {
    read_gemms(file.path(), "");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("CSV rows: quotes, blank lines, carriage returns", "[cost]") {
  const TemporaryFile file("a,b\r\n1,\"x, y\"\r\n\r\n2,z\r\n");
  const CsvRows csv(file.path());
  REQUIRE(csv.size() == 2);
  CHECK(csv.text(0, csv.column("b")) == "x, y");
  CHECK(csv.number(1, csv.column("a"), 0, 10) == 2);
  CHECK_THROWS_AS(csv.number(1, csv.column("b"), 0, 10), InputError);
  CHECK_THROWS_AS(csv.number(1, csv.column("a"), 0, 1), InputError);
  CHECK_THROWS_AS(csv.column("c"), InputError);
  CHECK_THROWS_AS(CsvRows("/nonexistent.csv"), InputError);
}

TEST_CASE("kernel tables with faults are refused by file, line and column", "[cost]") {
  const std::string header = "gpu,engine,dtype,m,n,k,latency_us\n";
  CHECK(failure(header + "H100,VLLM 1,bfloat16,1,2,3,4\n").empty());
  CHECK(failure("gpu,engine,dtype,m,n,k\n").find("latency_us") != std::string::npos);
  CHECK(failure(header + "H100,VLLM 1,bfloat16,1,2,3\n").find(":2:") != std::string::npos);
  CHECK(failure(header + "H100,VLLM 1,bfloat16,1,2,3,fast\n").find("latency_us") !=
        std::string::npos);
  CHECK(failure(header + "H100,VLLM 1,bfloat16,-1,2,3,4\n").find("m = -1") != std::string::npos);
  CHECK(failure(header + "H100,VLLM 1,bfloat16,1,2,3,nan\n") != "");
}

TEST_CASE("rows of other engines, types and GPUs are left out", "[cost]") {
  const TemporaryFile file(
      "gpu,engine,dtype,m,n,k,latency_us\nH100-SXM,VLLM 1,bfloat16,1,2,3,4\n"
      "H100-SXM,VLLM 1,fp8_block,1,2,3,4\nA100-SXM,VLLM 1,bfloat16,1,2,3,4\n"
      "H100-SXM,other,bfloat16,1,2,3,4\nH100-SXM,TRTLLM 1,fp8,1,2,3,4\n");
  CHECK(read_gemms(file.path(), "h100").size() == 2);
  CHECK(read_gemms(file.path(), "").size() == 3);
}
