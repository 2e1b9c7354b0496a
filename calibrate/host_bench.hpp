/// The host's share of serving, as far as it can be measured without a server: stand-ins that do
/// what an engine's front end and scheduler must do at least. An engine in Python takes longer.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace servesim::calibrate {

struct HostTimes {
  bool measured = false;
  /// From the client's send to the tokens of a prompt: HTTP over loopback, JSON, tokeniser.
  double front_end_before_ms = 0;
  /// From a token to the client: detokeniser, an event over loopback.
  double front_end_after_ms = 0;
  /// A decode step of 256 sequences: blocks, positions, slots and block tables, tokens appended.
  double step_ms = 0;
};

/// Medians over `repeats`. Not measured where loopback sockets cannot be had.
HostTimes measure_host(int repeats);

/// A vocabulary that splits text by the longest match, as byte-level tokenisers end up doing.
class GreedyTokenizer {
 public:
  /// `words` entries of pronounceable nonsense besides the 256 bytes.
  GreedyTokenizer(int words, std::uint64_t seed);
  std::vector<int> encode(const std::string& text) const;
  std::string decode(const std::vector<int>& tokens) const;
  /// About `tokens` tokens of text that the vocabulary covers.
  std::string text(int tokens, std::uint64_t seed) const;

 private:
  std::vector<std::string> entries_;
  std::unordered_map<std::string, int> ids_;
  std::size_t longest_ = 1;
};

/// The string value of `key` in a flat JSON object, escapes undone; "" when there is none.
std::string json_text_value(const std::string& json, const std::string& key);

}  // namespace servesim::calibrate
