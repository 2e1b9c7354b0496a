// The longest prefix a replica was sent, against the load: the replica with the fewest tokens
// outstanding, the prompt's own included as far as it has to be computed.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "cluster/router.hpp"

namespace servesim {
namespace {

/// A prefix by its chained hash, and how many tokens it has.
struct Prefix {
  std::uint64_t key;
  std::int64_t tokens;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
  return hash ^ (hash >> 32);
}

/// Who was sent which prefix. Old ones are forgotten, a million at a time, so memory is bounded.
class SentPrefixes {
 public:
  using Replicas = std::vector<std::uint32_t>;  ///< sorted

  /// Those that were sent the prefix, or null.
  const Replicas* find(std::uint64_t key) const {
    for (const auto* table : {&young_, &old_}) {
      if (const auto found = table->find(key); found != table->end()) return &found->second;
    }
    return nullptr;
  }
  void note(std::uint64_t key, std::uint32_t replica) {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    if (young_.size() >= kMost) {
      old_ = std::move(young_);
      young_.clear();
    }
    const auto [entry, added] = young_.try_emplace(key);
    if (added) {
      if (auto found = old_.find(key); found != old_.end()) {
        entry->second = std::move(found->second);
        old_.erase(found);
      }
    }
    const auto at = std::lower_bound(entry->second.begin(), entry->second.end(), replica);
    if (at == entry->second.end() || *at != replica) entry->second.insert(at, replica);
  }
  void forget(std::uint32_t replica) {
    for (auto* table : {&young_, &old_}) {
      for (auto& [key, replicas] : *table) std::erase(replicas, replica);
    }
  }

 private:
  std::unordered_map<std::uint64_t, Replicas> young_, old_;
};

class PrefixAware : public Router {
 public:
  std::size_t route(const Request& request, std::span<const ReplicaLoad> replicas) override {
    list_prefixes(request);
    match(replicas.size());
    const std::size_t best = cheapest(replicas, [this](const ReplicaLoad& load, std::size_t i) {
      return load.tokens - matched_[i];
    });
    for (const Prefix& prefix : prefixes_) {
      sent_.note(prefix.key, static_cast<std::uint32_t>(best));
    }
    if (request.hash_ids.empty() && !request.session.empty()) {
      turns_[request.session] = request.input_tokens + request.output_tokens;
    }
    return best;
  }
  void forget(std::size_t replica) override { sent_.forget(static_cast<std::uint32_t>(replica)); }

 private:
  /// The prompt's prefixes, the shortest first. Without hash ids, a session's next turn repeats
  /// the one before.
  void list_prefixes(const Request& request) {
    prefixes_.clear();
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < request.hash_ids.size(); ++i) {
      key = mix(key, request.hash_ids[i]);
      const std::int64_t end = static_cast<std::int64_t>(i + 1) * request.hash_block;
      prefixes_.push_back({key, std::min(end, request.input_tokens)});
    }
    if (!request.hash_ids.empty() || request.session.empty()) return;
    const auto turn = turns_.find(request.session);
    const std::int64_t last = turn == turns_.end() ? 0 : turn->second;
    prefixes_.push_back(
        {mix(1, std::hash<std::string>{}(request.session)), std::min(last, request.input_tokens)});
  }

  /// Sets matched_ to the tokens of the longest prefix that each replica was sent.
  void match(std::size_t replicas) {
    matched_.assign(replicas, 0);
    std::int64_t before = 0;
    for (const Prefix& prefix : prefixes_) {
      const SentPrefixes::Replicas* sent = sent_.find(prefix.key);
      if (sent == nullptr) return;
      for (const std::uint32_t replica : *sent) {
        if (matched_[replica] == before) matched_[replica] = prefix.tokens;
      }
      before = prefix.tokens;
    }
  }

  SentPrefixes sent_;
  std::unordered_map<std::string, std::int64_t> turns_;  ///< tokens of a session's last turn
  std::vector<Prefix> prefixes_;                         ///< of the request being routed
  std::vector<std::int64_t> matched_;
};

}  // namespace

std::unique_ptr<Router> make_prefix_aware(std::uint64_t) {
  return std::make_unique<PrefixAware>();
}

}  // namespace servesim
