#include "cli/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "core/error.hpp"
#include "core/units.hpp"
#include "sched/scheduler_config.hpp"

namespace servesim {
namespace {

using Scope = Axis::Scope;
using Kind = Axis::Kind;
using Setter = std::function<void(RunSpec&, const std::string&)>;

constexpr std::int64_t kManyTokens = 1'000'000'000;
constexpr std::int64_t kManyRequests = 1'000'000'000'000;

template <typename Member>
Axis text(std::string name, Scope scope, std::string value_name, std::string help, Member member) {
  return {
      std::move(name), scope,
      Kind::kValue,    std::move(value_name),
      std::move(help), [member](RunSpec& spec, const std::string& value) { spec.*member = value; }};
}

template <typename Member>
Axis integer(const std::string& name, Scope scope, std::string help, Member member,
             std::int64_t low, std::int64_t high) {
  return {name,
          scope,
          Kind::kValue,
          "N",
          std::move(help),
          [=](RunSpec& spec, const std::string& value) {
            spec.*member = parse_integer(value, "--" + name, low, high);
          }};
}

/// A number within [low, high], or above `low` when `open`.
Axis number(const std::string& name, Scope scope, std::string help,
            std::optional<double> RunSpec::*member, double low, double high, bool open) {
  return {name,
          scope,
          Kind::kValue,
          "X",
          std::move(help),
          [=](RunSpec& spec, const std::string& value) {
            const double parsed = parse_number(value, "--" + name);
            if (parsed < low || parsed > high || (open && parsed == low)) {
              throw InputError(fmt::format("--{} {}: accepted: {} {} to {}", name, value,
                                           open ? "more than" : "from", low, high));
            }
            spec.*member = parsed;
          }};
}

Axis toggle(const std::string& name, std::string help, std::optional<bool> RunSpec::*member) {
  return {name,
          Scope::kEngine,
          Kind::kSwitch,
          "",
          std::move(help),
          [=](RunSpec& spec, const std::string& value) {
            if (value != "true" && value != "false") {
              throw InputError(fmt::format("--{} {}: accepted: true or false", name, value));
            }
            spec.*member = value == "true";
          }};
}

void add(std::vector<Axis>& all, std::vector<Axis> more) {
  for (Axis& axis : more) all.push_back(std::move(axis));
}

std::vector<Axis> trace_axes() {
  return {
      {"trace", Scope::kTrace, Kind::kWhole, "FILE",
       "A request trace, .gz/.zst/.xz accepted; - is stdin. May be given again",
       [](RunSpec& spec, const std::string& value) { spec.trace = value; }},
      text("trace-format", Scope::kTrace, "NAME",
           "auto (by content), or a name from `simulate list formats`", &RunSpec::trace_format),
      text("time-unit", Scope::kTrace, "UNIT", "auto|s|ms|us|ns: overrides what the format says",
           &RunSpec::time_unit),
      integer("hash-block-size", Scope::kTrace,
              "Tokens per hash id: overrides what the format says", &RunSpec::hash_block_size, 1,
              kManyTokens),
  };
}

std::vector<Axis> setup_axes() {
  return {
      text("policy", Scope::kEngine, "NAME", "static|continuous|chunked|disaggregated [chunked]",
           &RunSpec::policy),
      text("kv", Scope::kEngine, "NAME",
           "paged|contiguous:max|contiguous:pow2|contiguous:oracle [paged]", &RunSpec::kv),
      text("model", Scope::kEngine, "NAME|FILE",
           "A name from `simulate list models` or a Hugging Face config.json [llama-3.1-8b]",
           &RunSpec::model),
      text("hardware", Scope::kEngine, "NAME|FILE",
           "A name from `simulate list hardware` or a profile.json [h100-sxm]", &RunSpec::hardware),
      integer("tensor-parallel-size", Scope::kEngine, "GPUs that share each layer [1]",
              &RunSpec::tensor_parallel_size, 1, 1024),
      integer("pipeline-parallel-size", Scope::kEngine,
              "Stages that share the layers, a batch in flight in each [1]",
              &RunSpec::pipeline_parallel_size, 1, kMostPipelineStages),
      integer("replicas", Scope::kLoad, "Engines behind the router [1]", &RunSpec::replicas, 1,
              65536),
      text("router", Scope::kLoad, "NAME", "A name from `simulate list routers` [round-robin]",
           &RunSpec::router),
      text("dtype", Scope::kEngine, "NAME", "auto|bfloat16|float16 [auto]", &RunSpec::dtype),
      text("quantization", Scope::kEngine, "NAME", "Weights: none|fp8|int8|int4 [none]",
           &RunSpec::quantization),
      text("kv-cache-dtype", Scope::kEngine, "NAME", "auto|fp8|int8|int4 [auto]",
           &RunSpec::kv_cache_dtype),
      integer("num-kv-heads", Scope::kEngine,
              "KV heads instead of the model's: 1 is MQA, as many as heads is MHA",
              &RunSpec::num_kv_heads, 1, kManyTokens),
      text("attention", Scope::kEngine, "NAME",
           "flash, or naive: scores and softmax go through memory [flash]", &RunSpec::attention),
      integer("attention-top-k", Scope::kEngine, "Cached tokens a query reads at most [all]",
              &RunSpec::attention_top_k, 1, kManyTokens),
      {"step-time", Scope::kEngine, Kind::kWhole, "MODEL",
       "roofline, or linear:base_us=B,per_token_us=P [roofline]",
       [](RunSpec& spec, const std::string& value) { spec.step_time = value; }},
  };
}

Axis whole(std::string name, std::string value_name, std::string help,
           std::optional<std::string> RunSpec::*member) {
  return {
      std::move(name), Scope::kEngine,
      Kind::kWhole,    std::move(value_name),
      std::move(help), [member](RunSpec& spec, const std::string& value) { spec.*member = value; }};
}

std::vector<Axis> disaggregated_axes() {
  return {
      integer("prefill-replicas", Scope::kEngine,
              "--policy disaggregated: engines that compute prompts [1]",
              &RunSpec::prefill_replicas, 1, 65536),
      integer("decode-replicas", Scope::kEngine, "Engines that generate [1]",
              &RunSpec::decode_replicas, 1, 65536),
      text("kv-link", Scope::kEngine, "NAME|FILE",
           "What KV crosses: a link or a topology from `simulate list`, or a file [ib-ndr400]",
           &RunSpec::kv_link),
      text("kv-transfer", Scope::kEngine, "NAME",
           "pull after prefill, or push layer by layer [pull]", &RunSpec::kv_transfer),
      whole("prefill", "K=V,...",
            "Engine flags of the prefill pool alone: tensor-parallel-size=4,hardware=h200-sxm",
            &RunSpec::prefill),
      whole("decode", "K=V,...", "Likewise for the decode pool", &RunSpec::decode),
  };
}

std::vector<Axis> engine_axes() {
  return {
      integer("block-size", Scope::kEngine, "Tokens per KV block [16]", &RunSpec::block_size, 1,
              1'000'000),
      integer("num-gpu-blocks-override", Scope::kEngine,
              "KV blocks per replica [what the memory leaves room for]",
              &RunSpec::num_gpu_blocks_override, 2, kManyRequests),
      number("gpu-memory-utilization", Scope::kEngine, "Share of GPU memory to use [0.92]",
             &RunSpec::gpu_memory_utilization, 0, 1, true),
      integer("max-model-len", Scope::kEngine, "Longest sequence [the model's own]",
              &RunSpec::max_model_len, 1, kManyTokens),
      integer("max-num-seqs", Scope::kEngine, "Sequences per step [by GPU memory]",
              &RunSpec::max_num_seqs, 1, kManyTokens),
      integer("max-num-batched-tokens", Scope::kEngine, "Token budget of a step [by GPU memory]",
              &RunSpec::max_num_batched_tokens, 1, kManyTokens),
      integer("long-prefill-token-threshold", Scope::kEngine,
              "Most tokens of one prompt per step; 0: no limit [0]",
              &RunSpec::long_prefill_token_threshold, 0, kManyTokens),
      number("watermark", Scope::kEngine, "Share of KV blocks kept free at admission [0]",
             &RunSpec::watermark, 0, 1, false),
      toggle("enable-prefix-caching", "Reuse the KV of equal prompt prefixes [on]",
             &RunSpec::enable_prefix_caching),
      toggle("enable-chunked-prefill", "Compute prompts in chunks [by policy]",
             &RunSpec::enable_chunked_prefill),
      toggle("async-scheduling", "Schedule one step ahead of the GPU [on]",
             &RunSpec::async_scheduling),
      toggle("scheduler-reserve-full-isl", "Admit a request only if all of its prompt fits [on]",
             &RunSpec::scheduler_reserve_full_isl),
      text("scheduling-policy", Scope::kEngine, "NAME", "fcfs|priority [fcfs]",
           &RunSpec::scheduling_policy),
      text("preemption-mode", Scope::kEngine, "NAME",
           "recompute|swap|stall: what a sequence without room for its next token does [recompute]",
           &RunSpec::preemption_mode),
      number("swap-space", Scope::kEngine,
             "GiB of host memory per GPU for --preemption-mode swap [4]", &RunSpec::swap_space, 0,
             1e6, true),
      {"kv-offload", Scope::kEngine, Kind::kWhole, "TIERS",
       "Tiers that keep evicted prefix blocks: cpu:64GiB,nvme:1TiB@7GB/s [none]",
       [](RunSpec& spec, const std::string& value) { spec.kv_offload = value; }},
      text("eviction", Scope::kEngine, "NAME",
           "lru|lfu|fifo: what --kv-offload tiers give up [lru]", &RunSpec::eviction),
      text("speculative-method", Scope::kEngine, "NAME", "ngram|eagle [no speculation]",
           &RunSpec::speculative_method),
      integer("num-speculative-tokens", Scope::kEngine, "Drafts per step",
              &RunSpec::num_speculative_tokens, 1, 1024),
      number("speculative-acceptance-rate", Scope::kEngine,
             "Probability that a draft is accepted if all before it were",
             &RunSpec::speculative_acceptance_rate, 0, 1, false),
  };
}

std::vector<Axis> load_axes() {
  return {
      text("request-rate", Scope::kLoad, "R",
           "Replace the arrivals by a random process of R requests/s; inf: all at once",
           &RunSpec::request_rate),
      number("burstiness", Scope::kLoad,
             "Shape of the gamma inter-arrival times; 1 is Poisson, less is burstier [1]",
             &RunSpec::burstiness, 0, 1e6, true),
      integer("max-concurrency", Scope::kLoad, "Requests in flight at the client [no limit]",
              &RunSpec::max_concurrency, 1, kManyTokens),
      integer("num-prompts", Scope::kLoad, "Take the first N requests of the trace",
              &RunSpec::num_prompts, 1, kManyRequests),
      integer("max-queue", Scope::kLoad,
              "Requests that may wait at a replica; more are rejected [no limit]",
              &RunSpec::max_queue, 1, kManyTokens),
      number("request-timeout", Scope::kLoad,
             "Seconds after which a client gives a request up [never]", &RunSpec::request_timeout,
             0, 1e9, true),
      text("scenario", Scope::kLoad, "FILE",
           "What happens to replicas and links, and when (docs/cluster.md)", &RunSpec::scenario),
      number("time-scale", Scope::kLoad, "Multiply the trace's times by X", &RunSpec::time_scale, 0,
             1e6, true),
  };
}

void declare_axis(FlagSet& flags, const Axis& axis) {
  const Arity arity = axis.kind == Kind::kSwitch ? Arity::kOptional : Arity::kEach;
  flags.add({axis.name, axis.value_name, axis.help, arity});
  if (axis.kind == Kind::kSwitch) flags.add({"no-" + axis.name, "", "", Arity::kNone});
}

std::vector<std::string> switch_values(const FlagSet& flags, const Axis& axis) {
  const std::string negative = "no-" + axis.name;
  if (flags.given(axis.name) && flags.given(negative)) {
    throw InputError(fmt::format("--{} and --{} contradict each other", axis.name, negative));
  }
  if (flags.given(negative)) return {"false"};
  if (!flags.given(axis.name)) return {};
  std::vector<std::string> values;
  for (const std::string& value : flags.values(axis.name)) {
    for (std::string& part : split_list(axis.name, value.empty() ? "true" : value)) {
      values.push_back(std::move(part));
    }
  }
  return values;
}

std::vector<std::string> values_of(const FlagSet& flags, const Axis& axis) {
  if (axis.kind == Kind::kSwitch) return switch_values(flags, axis);
  if (axis.kind == Kind::kWhole) return flags.values(axis.name);
  std::vector<std::string> values;
  for (const std::string& value : flags.values(axis.name)) {
    for (std::string& part : split_list(axis.name, value)) values.push_back(std::move(part));
  }
  return values;
}

}  // namespace

const std::vector<Axis>& axes() {
  static const std::vector<Axis> kAll = [] {
    std::vector<Axis> all;
    add(all, trace_axes());
    add(all, setup_axes());
    add(all, engine_axes());
    add(all, disaggregated_axes());
    add(all, load_axes());
    return all;
  }();
  return kAll;
}

std::vector<std::string> split_list(const std::string& name, const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(',', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (parts.back().empty()) {
      throw InputError(fmt::format("--{} {}: the list has an empty entry", name, text));
    }
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

void add_axes(FlagSet& flags, Axis::Scope scope) {
  for (const Axis& axis : axes()) {
    if (axis.scope == scope) declare_axis(flags, axis);
  }
}

void add_axes(FlagSet& flags, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::find_if(axes().begin(), axes().end(),
                                    [&](const Axis& axis) { return axis.name == name; });
    if (found == axes().end()) throw std::out_of_range("no axis " + name);
    declare_axis(flags, *found);
  }
}

std::vector<AxisValues> given_axes(const FlagSet& flags) {
  std::vector<AxisValues> given;
  for (const Axis& axis : axes()) {
    std::vector<std::string> values = values_of(flags, axis);
    for (auto value = values.begin(); value != values.end(); ++value) {
      if (std::find(values.begin(), value, *value) != value) {
        throw InputError(fmt::format("--{} names '{}' twice", axis.name, *value));
      }
    }
    if (!values.empty()) given.push_back({&axis, std::move(values)});
  }
  return given;
}

std::vector<AxisValues> join_traces(std::vector<AxisValues> given,
                                    const std::vector<std::string>& traces) {
  const Axis* axis = &axes().front();
  if (given.empty() || given.front().axis != axis) given.insert(given.begin(), {axis, {}});
  for (const std::string& trace : traces) {
    std::vector<std::string>& all = given.front().values;
    if (std::find(all.begin(), all.end(), trace) != all.end()) {
      throw InputError(fmt::format("{} is named twice, by --trace and --trace-set", trace));
    }
    all.push_back(trace);
  }
  return given;
}

std::vector<PlannedRun> product(const RunSpec& base, const std::vector<AxisValues>& given) {
  constexpr std::size_t kMostRuns = 100'000;
  std::vector<PlannedRun> runs{{base, {}}};
  for (const auto& [axis, values] : given) {
    if (runs.size() * values.size() > kMostRuns) {
      throw InputError(fmt::format("the lists ask for more than {} runs", kMostRuns));
    }
    const bool shown = values.size() > 1 && axis->name != "trace" && axis->name != "policy";
    std::vector<PlannedRun> next;
    next.reserve(runs.size() * values.size());
    for (const PlannedRun& run : runs) {
      for (const std::string& value : values) {
        next.push_back(run);
        axis->set(next.back().spec, value);
        if (shown) next.back().varied.emplace_back(axis->name, value);
      }
    }
    runs = std::move(next);
  }
  return runs;
}

}  // namespace servesim
