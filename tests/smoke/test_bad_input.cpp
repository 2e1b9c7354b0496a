/// Is every fault refused with one clear line, exit code 2 and no output left behind?
#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {

using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;

namespace {

/// Runs `arguments` with outputs to a folder of their own. REQUIRES: they do not name outputs.
void check_refused(std::vector<std::string> arguments, const std::vector<std::string>& words,
                   const std::string& input = "") {
  const TemporaryFolder outputs;
  arguments.insert(arguments.end(), {"--json", outputs.path() + "/out.json", "--requests",
                                     outputs.path() + "/out.csv"});
  const ProcessResult result = simulate(arguments, "", input);
  INFO("arguments: " << Catch::StringMaker<std::vector<std::string>>::convert(arguments));
  INFO("stderr: " << result.err.substr(0, 1000));
  CHECK(result.exit_code == 2);
  CHECK(result.error_lines() == 1);
  CHECK(result.out.empty());
  CHECK(outputs.names().empty());
  for (const std::string& word : words) {
    INFO("expected: " << word);
    CHECK(result.err.find(word) != std::string::npos);
  }
}

/// A trace of three good requests.
std::string good_trace() {
  std::string text;
  for (int i = 0; i < 3; ++i) {
    text += "{\"arrival_ms\": " + std::to_string(i * 100) +
            ", \"input_tokens\": 100, \"output_tokens\": 5}\n";
  }
  return text;
}

void check_bad_trace(const std::string& content, const std::vector<std::string>& words,
                     const std::string& name = "trace.jsonl") {
  const TemporaryFolder folder;
  const std::string path = folder.write(name, content);
  std::vector<std::string> all{path};
  all.insert(all.end(), words.begin(), words.end());
  check_refused({"--trace", path}, all);
}

/// The good trace with its third line replaced.
void check_bad_line(const std::string& line) {
  const std::string good = good_trace();
  const std::size_t second_end = good.find('\n', good.find('\n') + 1);
  check_bad_trace(good.substr(0, second_end + 1) + line + "\n", {":3:"});
}

void check_bad_flags(const std::vector<std::string>& flags, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"--trace", folder.write("good.jsonl", good_trace())};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  check_refused(arguments, words);
}

}  // namespace

TEST_CASE("a good trace runs") {
  const TemporaryFolder folder;
  const ProcessResult result =
      simulate({"--trace", folder.write("good.jsonl", good_trace()), "--no-progress"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
}

TEST_CASE("files that are no trace") {
  check_refused({"--trace", "/no/such/file.jsonl"}, {"/no/such/file.jsonl"});
  check_refused({"--trace", "/tmp"}, {"/tmp"});
  check_bad_trace("", {"empty"});
  check_bad_trace("\n\n", {});
  check_bad_trace("# only a comment\n", {});
  check_bad_trace(std::string("\x7f"
                              "ELF\0\1\2\3\xff\xfe\0\0\0garbage",
                              20),
                  {});
  check_bad_trace(std::string(200'000, '\0'), {});
  check_bad_trace("hello world\nthis is no trace\n", {});
}

TEST_CASE("broken JSON names its line") {
  check_bad_line("{\"arrival_ms\": 5, \"input_tokens\": 10, \"output_tok");
  check_bad_line("{\"arrival_ms\": 5, \"input_tokens\": 10, \"output_tokens\": 5}}");
  check_bad_line("[1, 2]");
  check_bad_line("42");
  check_bad_line("nonsense");
}

TEST_CASE("missing and misspelt fields") {
  check_bad_line("{\"arrival_ms\": 5, \"input_tokens\": 10}");
  check_bad_line("{\"arrival_ms\": 5, \"input_tokens\": 10, \"output_tokns\": 5}");
}

TEST_CASE("lengths that are none") {
  for (const char* value : {"-1", "1.5", "9223372036854775808", "1e300", "NaN", "\"ten\"", "null",
                            "true", "[1]", "99999999999999999999999999"}) {
    check_bad_line(std::string("{\"arrival_ms\": 5, \"input_tokens\": ") + value +
                   ", \"output_tokens\": 5}");
    check_bad_line(std::string("{\"arrival_ms\": 5, \"output_tokens\": ") + value +
                   ", \"input_tokens\": 5}");
  }
}

TEST_CASE("times that are none") {
  for (const char* value : {"-5", "-0.001", "1e300", "Infinity", "NaN", "\"now\"", "{}"}) {
    check_bad_line(std::string("{\"arrival_ms\": ") + value +
                   ", \"input_tokens\": 5, \"output_tokens\": 5}");
  }
}

TEST_CASE("duplicate ids") {
  check_bad_trace(
      "{\"id\": \"a\", \"arrival_ms\": 0, \"input_tokens\": 5, \"output_tokens\": 5}\n"
      "{\"id\": \"a\", \"arrival_ms\": 1, \"input_tokens\": 5, \"output_tokens\": 5}\n",
      {":2:", "a"});
}

TEST_CASE("a hundred thousand nested brackets") {
  check_bad_line(std::string(100'000, '['));
  check_bad_line("{\"arrival_ms\": " + std::string(100'000, '[') + "}");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  check_bad_line(objects);
}

TEST_CASE("CSV faults name their line") {
  const std::string head = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,10,5\n";
  for (const char* line : {"0.6,-1,5", "0.6,1.5,5", "0.6,10", "0.6,10,5,7", "x,10,5", "-1,10,5",
                           "0.6,9223372036854775808,5", "nan,10,5", "0.6,,5"}) {
    check_bad_trace(head + line + "\n", {":3:"}, "trace.csv");
  }
}

TEST_CASE("a truncated gzip") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += good_trace();
  folder.write("trace.jsonl", text);
  REQUIRE(testing::shell("gzip -k trace.jsonl && head -c 200 trace.jsonl.gz > cut.jsonl.gz",
                         folder.path())
              .exit_code == 0);
  check_refused({"--trace", folder.path() + "/cut.jsonl.gz"}, {"cut.jsonl.gz"});
}

TEST_CASE("junk without end neither crashes nor fills memory") {
  std::string junk;
  for (int i = 0; i < 300'000; ++i) junk += "junk junk junk\n";
  check_bad_trace(junk, {});
  check_bad_trace(std::string(20'000'000, 'x'), {});
}

TEST_CASE("stdin is read with -, and its faults are named") {
  check_refused({"--trace", "-"}, {"stdin"}, "nonsense\n");
}

TEST_CASE("output paths that cannot be written are refused before the run") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("good.jsonl", good_trace());
  const auto refused = [&](const std::vector<std::string>& flags, const std::string& word) {
    std::vector<std::string> arguments{"--trace", trace};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProcessResult result = simulate(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.error_lines() == 1);
    CHECK(result.err.find(word) != std::string::npos);
    CHECK(folder.names() == std::vector<std::string>{"good.jsonl"});
  };
  refused({"--json", folder.path() + "/no/out.json"}, "no/out.json");
  refused({"--json", folder.path()}, "directory");
  refused({"--requests", folder.path() + "/no/out.csv"}, "no/out.csv");
  refused({"--requests", folder.path() + "/out.txt"}, ".csv or .jsonl");
  refused({"--json", folder.path() + "/a.csv", "--requests", folder.path() + "/a.csv"}, "both");
  refused({"--json", trace}, "overwrite");
  refused({"--json", folder.path() + "/a.json", "--schedule-log", "/no/such/log"}, "/no/such/log");
}

TEST_CASE("unknown names come with the nearest known one") {
  check_bad_flags({"--policy", "continous"}, {"continous", "'continuous'"});
  check_bad_flags({"--kv", "pagd"}, {"'paged'"});
  check_bad_flags({"--model", "llama-3.1-8"}, {"'llama-3.1-8b'"});
  check_bad_flags({"--hardware", "h100-sx"}, {"'h100-sxm'"});
  check_bad_flags({"--router", "round-robbin"}, {"'round-robin'"});
  check_bad_flags({"--trace-format", "mooncak"}, {"'mooncake'"});
  check_bad_flags({"--time-unit", "min"}, {"min"});
  check_bad_flags({"--quantization", "fp7"}, {"fp7"});
  check_bad_flags({"--kv-cache-dtype", "int9"}, {"int9"});
  check_bad_flags({"--dtype", "float7"}, {"float7"});
  check_bad_flags({"--scheduling-policy", "lifo"}, {"fcfs"});
  check_bad_flags({"--polcy", "static"}, {"'--policy'"});
  check_bad_flags({"--blok-size", "16"}, {"'--block-size'"});
  check_bad_flags({"--pipeline-parallel-size", "2", "--policy", "static"},
                  {"--pipeline-parallel-size", "static"});
  check_bad_flags({"--pipeline-parallel-size", "0"}, {"--pipeline-parallel-size", "1"});
}

TEST_CASE("sizes that are none") {
  for (const char* flag : {"--block-size", "--max-num-seqs", "--max-num-batched-tokens",
                           "--max-model-len", "--tensor-parallel-size", "--replicas",
                           "--num-prompts", "--max-concurrency", "--num-gpu-blocks-override"}) {
    for (const char* value : {"0", "-1", "1.5", "many", "9223372036854775808", "16,", "16,,32"}) {
      check_bad_flags({flag, value}, {flag});
    }
  }
  for (const char* flag : {"--gpu-memory-utilization", "--request-rate", "--time-scale"}) {
    for (const char* value : {"0", "-1", "nan", "much"}) check_bad_flags({flag, value}, {flag});
  }
  check_bad_flags({"--gpu-memory-utilization", "1.01"}, {"--gpu-memory-utilization"});
  check_bad_flags({"--num-kv-heads", "0"}, {"--num-kv-heads"});
  check_bad_flags({"--num-kv-heads", "5"}, {"num-kv-heads 5", "32"});
  check_bad_flags({"--threads", "0"}, {"--threads"});
  check_bad_flags({"--seed", "-1"}, {"--seed"});
  check_bad_flags({"--goodput", "ttft"}, {"ttft"});
  check_bad_flags({"--goodput", "ttft:0"}, {"ttft"});
  check_bad_flags({"--goodput", "itl:5"}, {"itl"});
  check_bad_flags({"--step-time", "linear:base=5"}, {"base"});
  check_bad_flags({"--step-time", "linear:base_us=-5"}, {"base_us"});
  check_bad_flags({"--step-time", "linear:base_us=1e12"}, {"base_us"});
  check_bad_flags({"--step-time", "linear:base_us=0,per_token_us=0"}, {"time"});
  check_bad_flags({"--step-time", "cubic"}, {"roofline"});
}

TEST_CASE("flags that contradict each other") {
  check_bad_flags({"--policy", "chunked", "--no-enable-chunked-prefill"}, {"continuous"});
  check_bad_flags({"--policy", "continuous", "--enable-chunked-prefill"}, {"chunked"});
  check_bad_flags({"--policy", "static", "--enable-prefix-caching"}, {"static"});
  check_bad_flags({"--policy", "static", "--async-scheduling"}, {"static"});
  check_bad_flags({"--enable-prefix-caching", "--no-enable-prefix-caching"}, {"contradict"});
  check_bad_flags({"--max-num-seqs", "512", "--max-num-batched-tokens", "256"},
                  {"max_num_batched_tokens", "512"});
  check_bad_flags({"--policy", "continuous", "--max-num-batched-tokens", "2048"},
                  {"max_model_len"});
  check_bad_flags({"--max-model-len", "131073"}, {"131072"});
  check_bad_flags({"--num-speculative-tokens", "3"}, {"--speculative-method"});
  check_bad_flags({"--speculative-method", "ngram"}, {"--num-speculative-tokens"});
  check_bad_flags({"--burstiness", "0.5"}, {"--request-rate"});
  check_bad_flags({"--policy", "static,static"}, {"twice"});
  check_bad_flags({"--policy", "static,chunked"}, {"single run"});
  check_bad_flags({"--quiet", "--quiet"}, {"--quiet"});
  check_bad_flags({"--threads"}, {"--threads needs a value"});
  check_bad_flags({"stray"}, {"stray"});
}

TEST_CASE("pools and links that do not go together") {
  check_bad_flags({"--prefill-replicas", "2"}, {"--prefill-replicas", "disaggregated"});
  check_bad_flags({"--kv-link", "nvlink4"}, {"--kv-link", "disaggregated"});
  check_bad_flags({"--policy", "disaggregated", "--replicas", "2"}, {"--replicas"});
  check_bad_flags({"--policy", "disaggregated", "--kv-link", "ib-ndr40"}, {"'ib-ndr400'"});
  check_bad_flags({"--policy", "disaggregated", "--kv-transfer", "shove"}, {"pull, push"});
  check_bad_flags({"--policy", "disaggregated", "--prefill", "tensor-paralel-size=4"},
                  {"--prefill", "'tensor-parallel-size'"});
  check_bad_flags({"--policy", "disaggregated", "--decode", "block-size=32"}, {"block-size"});
  check_bad_flags({"--policy", "disaggregated", "--decode", "max-num-seqs=0"}, {"--max-num-seqs"});
  check_bad_flags({"--policy", "disaggregated", "--decode", "max-num-seqs"}, {"KEY=VALUE"});
  check_bad_flags({"--policy", "disaggregated", "--kv-link", "dgx-h100", "--decode-replicas", "8"},
                  {"8 GPUs are too few"});
  const TemporaryFolder folder;
  const std::string vertices =
      R"("source": "t", "kind": "assumed", "vertices": [{"name": "gpu", "kind": "gpu", "count": 2}], )";
  const auto link = [&](const std::string& name, const std::string& links,
                        const std::vector<std::string>& words) {
    const std::string path = folder.write(name, "{" + vertices + "\"links\": " + links + "}");
    check_bad_flags({"--policy", "disaggregated", "--kv-link", path}, words);
  };
  link("apart.json", "[]", {"no path from gpu0"});
  link("missing.json", R"([{"from": "gpu0", "to": "gpu7", "link": "nvlink4"}])",
       {"missing.json", "'gpu7'"});
  const std::string zero = folder.write(
      "zero.json",
      R"({"bandwidth": {"bytes_per_s_per_direction": 0, "source": "t", "kind": "assumed"},
                       "latency": {"us": 1, "source": "t", "kind": "assumed"}})");
  check_bad_flags({"--policy", "disaggregated", "--kv-link", zero}, {"zero.json", "above 0"});
}

TEST_CASE("scenarios that cannot be") {
  const TemporaryFolder folder;
  int count = 0;
  const auto refused = [&](const std::string& events, const std::vector<std::string>& words,
                           std::vector<std::string> flags = {"--replicas", "2"}) {
    const std::string path =
        folder.write("s" + std::to_string(count++) + ".json", "{\"events\": " + events + "}");
    flags.insert(flags.end(), {"--scenario", path});
    std::vector<std::string> all{path};
    all.insert(all.end(), words.begin(), words.end());
    check_bad_flags(flags, all);
  };
  refused("5", {"list"});
  refused(R"([{"at_s": 1, "replica": 2, "state": "down"}])", {"no replica 2", "0 to 1"});
  refused(R"([{"at_s": 1, "replica": 0, "state": "sideways"}])", {"down, up"});
  refused(R"([{"at_s": -1, "replica": 0, "state": "down"}])", {"at_s"});
  refused(R"([{"at_s": 1, "replica": 0, "link": "x"}])", {"either"});
  refused(R"([{"at_s": 1, "link": "x", "bandwidth": 1}])", {"disaggregated"});
  refused(R"([{"at_s": 1, "link": "gpu0-ib", "bandwidth": 1}])", {"gpu0-ib-ndr400"},
          {"--policy", "disaggregated"});
  refused(R"([{"at_s": 1, "link": "gpu0-ib-ndr400", "bandwidth": 2}])", {"bandwidth"},
          {"--policy", "disaggregated"});
  check_bad_flags({"--scenario", "/no/such.json"}, {"/no/such.json"});
  check_bad_flags({"--max-queue", "0"}, {"--max-queue"});
  check_bad_flags({"--request-timeout", "0"}, {"--request-timeout"});
  check_bad_flags({"--policy", "static", "--request-timeout", "5"}, {"static"});
}

TEST_CASE("a model that does not fit") {
  check_bad_flags({"--model", "llama-3.1-405b"}, {"GB"});
  check_bad_flags({"--model", "llama-3.1-70b"}, {"--tensor-parallel-size"});
  check_bad_flags({"--model", "llama-3.1-70b", "--hardware", "l40s"}, {"GB"});
  check_bad_flags({"--tensor-parallel-size", "7"}, {"7"});
}

TEST_CASE("no trace at all") {
  check_refused({"--policy", "static"}, {"--trace"});
}

TEST_CASE("engine configurations that are none") {
  const TemporaryFolder folder;
  const std::string trace =
      folder.write("case.trace.jsonl",
                   "{\"id\": \"a\", \"arrival_us\": 0, \"output_len\": 5, \"prompt_len\": 9}\n");
  const auto refused = [&](const std::string& config, const std::vector<std::string>& words) {
    const std::string path = folder.write("case.config.json", config);
    check_refused({"--engine-config", path, "--trace", trace}, words);
  };
  const std::string step = "\"step_us\": {\"base\": 1000, \"per_token\": 10}";
  refused("{", {"case.config.json"});
  refused("[]", {"case.config.json"});
  refused("", {"case.config.json", "empty"});
  refused("{\"num_gpu_blocks\": 50,\n\"block_size\": x}", {"case.config.json:2:"});
  refused("{\"num_gpu_blocks\": 50, \"num_gpu_blocks\": 60, " + step + "}", {"twice"});
  refused("{\"num_gpu_blocks\": 50, \"step_us\": {\"base\": 0}}", {"case.config.json", "time"});
  refused("{\"num_gpu_blocks\": 50, \"max_num_batched_tokens\": 8, " + step + "}",
          {"max_num_batched_tokens", "max_num_seqs"});
  refused(std::string(100'000, '['), {"case.config.json", "deep"});
  refused("{" + step + "}", {"num_gpu_blocks"});
  refused("{\"num_gpu_blocks\": 1, " + step + "}", {"num_gpu_blocks"});
  refused("{\"num_gpu_blocks\": 50, \"blok_size\": 16, " + step + "}", {"'block_size'"});
  refused("{\"num_gpu_blocks\": 50, \"max_num_seqs\": 3000, " + step + "}", {"max_num_seqs"});
  refused("{\"num_gpu_blocks\": 50, \"enable_chunked_prefill\": false, " + step + "}",
          {"max_model_len"});
  refused("{\"num_gpu_blocks\": 50, \"policy\": \"lifo\", " + step + "}", {"fcfs"});
  refused("{\"num_gpu_blocks\": 50, \"spec\": {\"k\": 3, \"method\": \"medusa\"}, " + step + "}",
          {"ngram"});
  refused("{\"num_gpu_blocks\": 50, \"watermark\": \"low\", " + step + "}", {"watermark"});
  const std::string good = folder.write("good.json", "{\"num_gpu_blocks\": 50, " + step + "}");
  check_refused({"--engine-config", good, "--trace", trace, "--block-size", "32"},
                {"--block-size", "--engine-config"});
  check_refused({"--engine-config", "/no/such.json", "--trace", trace}, {"/no/such.json"});
  check_refused({"--engine-config", folder.path(), "--trace", trace}, {"directory"});
}

TEST_CASE("schedule cases that are none") {
  const TemporaryFolder folder;
  const std::string config = folder.write(
      "good.json", "{\"num_gpu_blocks\": 50, \"step_us\": {\"base\": 1000, \"per_token\": 10}}");
  const std::string head = "{\"arrival_us\": 0, \"output_len\": 5, ";
  for (const std::string& line :
       {head + "\"id\": \"a\", \"prompt_len\": 9}",                               // a second "a"
        head + "\"prompt_len\": 9}", head + "\"id\": \"b\"}",                     // missing fields
        head + "\"id\": \"b\", \"prompt_len\": 40, \"hash_ids\": [1]}",           // floor is 2
        head + "\"id\": \"b\", \"prompt_len\": 40, \"hash_ids\": [1, 2, 3, 4]}",  // ceil is 3
        head + "\"id\": \"b\", \"prompt_len\": -1}"}) {
    const std::string path = folder.write(
        "case.trace.jsonl",
        head + "\"id\": \"a\", \"prompt_len\": 40, \"hash_ids\": [1, 2]}\n" + line + "\n");
    check_refused({"--engine-config", config, "--trace", path}, {"case.trace.jsonl:2:"});
  }
}

TEST_CASE("faults of the other verbs") {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& word) {
    const ProcessResult result = simulate(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.error_lines() == 1);
    CHECK(result.err.find(word) != std::string::npos);
  };
  refused({"lst"}, "'list'");
  refused({"list", "modles"}, "'models'");
  refused({"generate"}, "--spec");
  refused({"generate", "--spec", "chatt"}, "'chat'");
  refused({"generate", "--spec", "chat", "--num-prompts", "0"}, "--num-prompts");
  refused({"generate", "--spec", "chat", "--output", "/no/such/file"}, "/no/such/file");
  refused({"explain"}, "--batch");
  refused({"explain", "--batch", "-1"}, "--batch");
  refused({"explain", "--prefill", "5@x"}, "--prefill");
  refused({"explain", "--batch", "4", "--heat", "2"}, "--heat");
}

}  // namespace servesim
