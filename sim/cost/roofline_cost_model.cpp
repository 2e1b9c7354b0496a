#include "cost/roofline_cost_model.hpp"

#include <algorithm>
#include <numeric>

namespace servesim {
namespace {

/// Steps of more tokens than this are rare, and priced afresh.
constexpr std::size_t kMostMemoised = std::size_t{1} << 14;

constexpr std::size_t index(Component component) {
  return static_cast<std::size_t>(component);
}

SimTime nearest_ns(double seconds) {
  return SimTime(static_cast<std::int64_t>(seconds * 1e9 + 0.5));
}

double sum(const std::array<double, kComponentCount>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void add(StepCost& cost, Component component, const KernelCost& part, double ranks) {
  cost.seconds[index(component)] += part.seconds;
  cost.compute_bound_s += part.compute_bound_s;
  cost.flops += part.flops * ranks;
  cost.hbm_bytes += part.hbm_bytes * ranks;
}

void add(StepCost& cost, const PartCosts& other, double ranks) {
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    add(cost, static_cast<Component>(i), other.parts[i], ranks);
  }
}

void add(StepCost& cost, const StepCost& other) {
  for (std::size_t i = 0; i < kComponentCount; ++i) cost.seconds[i] += other.seconds[i];
  cost.compute_bound_s += other.compute_bound_s;
  cost.flops += other.flops;
  cost.hbm_bytes += other.hbm_bytes;
}

}  // namespace

double peak_flops(const HardwareSpec& hardware, WeightFormat format) {
  if (format == WeightFormat::kFp8) return hardware.fp8_flops.value_or(hardware.bf16_flops);
  if (format == WeightFormat::kInt8) return hardware.int8_flops.value_or(hardware.bf16_flops);
  return hardware.bf16_flops;
}

RooflineCostModel::RooflineCostModel(const ModelSpec& model, const HardwareSpec& hardware,
                                     const DeploymentSpec& deployment)
    : costs_(model, hardware, deployment),
      split_(model.layers, deployment.pipeline_parallel),
      ranks_(static_cast<double>(deployment.tensor_parallel)),
      stages_(static_cast<double>(deployment.pipeline_parallel)),
      peak_flops_(stages_ * ranks_ * servesim::peak_flops(hardware, deployment.weights)),
      peak_bytes_per_s_(stages_ * ranks_ * hardware.hbm_bytes_per_s),
      drafts_(deployment.draft_tokens > 0),
      heat_time_constant_s_(hardware.heat_time_constant_s) {}

int RooflineCostModel::level_of(Heat heat) {
  return std::clamp(static_cast<int>(heat.x * kHeatLevels + 0.5), 0, kHeatLevels);
}

template <typename Price>
const RooflineCostModel::TokenCost& RooflineCostModel::priced(Memo& memo, std::int64_t tokens,
                                                              int level, Price price) {
  const auto make = [&](TokenCost& made) {
    made = TokenCost{};
    add(made.cost, price(tokens, heat_at(level)), ranks_);
    made.level_within = level_within(level, made.cost.compute_bound_s, sum(made.cost.seconds));
  };
  const auto at = static_cast<std::size_t>(tokens);
  if (at >= kMostMemoised) {
    make(not_kept_);
    return not_kept_;
  }
  std::vector<std::uint32_t>& places = memo[static_cast<std::size_t>(level)];
  if (at >= places.size()) places.resize(std::max(at + 1, 2 * places.size()));
  if (places[at] == 0) {
    make(token_costs_.emplace_back());
    places[at] = static_cast<std::uint32_t>(token_costs_.size());
  }
  return token_costs_[places[at] - 1];
}

const RooflineCostModel::TokenCost& RooflineCostModel::body(std::int64_t tokens, int level) {
  return priced(body_, tokens, level,
                [this](std::int64_t n, double heat) { return costs_.body(n, heat); });
}

const RooflineCostModel::TokenCost& RooflineCostModel::head(std::int64_t rows, int level) {
  return priced(head_, rows, level,
                [this](std::int64_t n, double heat) { return costs_.head(n, heat); });
}

const RooflineCostModel::TokenCost& RooflineCostModel::drafting(std::int64_t seqs, int level) {
  return priced(drafting_, seqs, level,
                [this](std::int64_t n, double heat) { return costs_.drafting(n, heat); });
}

void RooflineCostModel::add_decode_work(StepCost& cost, double tokens) const {
  cost.flops += tokens * costs_.decode_flops_per_token() * ranks_;
  cost.hbm_bytes += tokens * costs_.decode_bytes_per_token() * ranks_;
}

int RooflineCostModel::level_within(int level, double compute_bound_s, double seconds) const {
  const double half_of_stage = 2 * stages_;
  const Heat half = next_heat(Heat{heat_at(level)}, compute_bound_s / half_of_stage,
                              SimTime::from_seconds(seconds / half_of_stage));
  return std::max(level_of(half), level);
}

/// All but attention.
StepCost RooflineCostModel::linear_parts(std::int64_t tokens, std::int64_t sampled,
                                         std::int64_t seqs, int level) {
  StepCost cost = body(tokens, level).cost;
  add(cost, head(sampled, level).cost);
  if (drafts_) add(cost, drafting(seqs, level).cost);
  return cost;
}

std::unique_ptr<RooflineCostModel::DecodeEntry> RooflineCostModel::make_decode_entry(
    std::int64_t seqs, int start_level) {
  auto entry = std::make_unique<DecodeEntry>();
  if (seqs <= 0) return entry;
  const int level = body(seqs, start_level).level_within;
  entry->new_tokens = static_cast<double>(seqs);
  entry->rest = linear_parts(seqs, seqs, seqs, level);
  add_decode_work(entry->rest, entry->new_tokens);
  entry->rest_s = sum(entry->rest.seconds);
  entry->rest.total = nearest_ns(entry->rest_s);
  entry->attention = costs_.decode_attention(seqs);
  return entry;
}

const RooflineCostModel::DecodeEntry& RooflineCostModel::decode_entry(std::int64_t seqs,
                                                                      int level) {
  // Nearly every step of a stretch asks for the same entry again. The comparison is predicted, so
  // the processor need not wait for the heat of the last step before it prices the next.
  if (seqs == last_seqs_ && level == last_level_) return *last_entry_;
  auto& table = decode_[static_cast<std::size_t>(level)];
  const auto at = static_cast<std::size_t>(seqs);
  if (at >= table.size()) table.resize(std::max(at + 1, 2 * table.size()));
  if (!table[at]) table[at] = make_decode_entry(seqs, level);
  last_seqs_ = seqs;
  last_level_ = level;
  last_entry_ = table[at].get();
  return *last_entry_;
}

/// Seconds of attention. Steps of a stretch differ by one token per sequence: a few are priced
/// together, which the processor does side by side.
double RooflineCostModel::attention_ahead(const DecodeEntry& entry, std::int64_t seqs,
                                          std::int64_t context, const SharedContext& shared) {
  const bool follows = seqs == ahead_.seqs && context == ahead_.context && shared == ahead_.shared;
  if (!follows || ahead_.next == ahead_.end) {
    ahead_.next = 0;
    ahead_.end = follows ? ahead_.seconds.size() : 1;
    double tokens = static_cast<double>(context) + entry.new_tokens;
    for (std::size_t i = 0; i < ahead_.end; ++i, tokens += entry.new_tokens) {
      ahead_.seconds[i] = costs_.decode_attention_seconds(entry.attention, tokens, shared);
    }
    ahead_.seqs = seqs;
    ahead_.shared = shared;
  }
  ahead_.context = context + seqs;
  return ahead_.seconds[ahead_.next++];
}

DecodeStep RooflineCostModel::decode_step(std::int64_t seqs, std::int64_t context,
                                          const SharedContext& shared, Heat& heat) {
  const DecodeEntry& entry = decode_entry(seqs, level_of(heat));
  const double attention_s = attention_ahead(entry, seqs, context, shared);
  const SimTime total = nearest_ns(entry.rest_s + attention_s);
  heat = next_heat(heat, entry.rest.compute_bound_s, total);
  return DecodeStep{total, attention_s, &entry.rest};
}

StepCost RooflineCostModel::decode_only(const StepShape& shape, int level) {
  const DecodeEntry& entry = decode_entry(shape.decode_seqs, level);
  const auto context = static_cast<double>(shape.decode_context);
  const double attention_s =
      costs_.decode_attention_seconds(entry.attention, context + entry.new_tokens, shape.shared);
  StepCost cost = entry.rest;
  cost.seconds[index(Component::kAttentionDecode)] = attention_s;
  cost.total = nearest_ns(entry.rest_s + attention_s);
  add_decode_work(cost, context);
  return cost;
}

StepCost RooflineCostModel::price(const StepShape& shape, Heat heat) {
  const std::int64_t tokens = shape.tokens();
  if (tokens <= 0) return {};
  const int start_level = level_of(heat);
  if (shape.chunks.empty() && shape.decode_tokens == shape.decode_seqs &&
      shape.sampled == shape.decode_seqs) {
    return decode_only(shape, start_level);
  }
  const int level = body(tokens, start_level).level_within;
  StepCost cost =
      linear_parts(tokens, shape.sampled, shape.decode_seqs + std::ssize(shape.chunks), level);
  if (shape.decode_seqs > 0) {
    const auto cached = static_cast<double>(shape.decode_context + shape.decode_tokens);
    cost.seconds[index(Component::kAttentionDecode)] = costs_.decode_attention_seconds(
        costs_.decode_attention(shape.decode_seqs), cached, shape.shared);
    add_decode_work(cost, cached);
  }
  add(cost, Component::kAttentionPrefill, costs_.prefill_attention(shape.chunks, heat_at(level)),
      ranks_);
  cost.total = nearest_ns(sum(cost.seconds));
  return cost;
}

PartCosts RooflineCostModel::parts(const StepShape& shape, Heat heat) const {
  const int start_level = level_of(heat);
  StepCost start;
  add(start, costs_.body(shape.tokens(), heat_at(start_level)), ranks_);
  const double at = heat_at(level_within(start_level, start.compute_bound_s, sum(start.seconds)));
  PartCosts parts = costs_.body(shape.tokens(), at);
  parts.add(costs_.head(shape.sampled, at));
  parts.add(costs_.drafting(shape.decode_seqs + std::ssize(shape.chunks), at));
  if (shape.decode_seqs > 0) {
    const auto cached = static_cast<double>(shape.decode_context + shape.decode_tokens);
    const double seconds = costs_.decode_attention_seconds(
        costs_.decode_attention(shape.decode_seqs), cached, shape.shared);
    parts.add(Component::kAttentionDecode, {seconds, 0, cached * costs_.decode_flops_per_token(),
                                            cached * costs_.decode_bytes_per_token()});
  }
  parts.add(Component::kAttentionPrefill, costs_.prefill_attention(shape.chunks, at));
  return parts;
}

AttentionWork RooflineCostModel::decode_attention_work() const {
  return {costs_.decode_flops_per_token() * ranks_, costs_.decode_bytes_per_token() * ranks_};
}

Heat RooflineCostModel::next_heat(Heat heat, double compute_bound_s, SimTime elapsed) const {
  const double tau = heat_time_constant_s_;
  const double inverse = 1 / (tau + elapsed.seconds());  // need not wait for the heat
  return Heat{(heat.x * tau + compute_bound_s) * inverse};
}

}  // namespace servesim
