// The verdict of a comparison in words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/result_table.hpp"
#include "study/comparison.hpp"

namespace servesim {
namespace {

constexpr std::size_t kNamesShown = 4;

/// The figures a verdict speaks of, most telling first; the others stand in the tables.
constexpr std::array kSpokenOf{"request_goodput",   "mean_e2el_ms",
                               "mean_ttft_ms",      "mean_tpot_ms",
                               "output_throughput", "usd_per_million_output_tokens"};

/// "a", "a and b", "a, b and c", "a, b, c, d and 3 more"; "(a, b) and (c, d)" of names with commas.
std::string names_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
  if (names.size() > kNamesShown)
    shown.push_back(fmt::format("{} more", names.size() - kNamesShown));
  for (std::string& name : shown) {
    if (shown.size() > 1 && name.find(", ") != std::string::npos) name = "(" + name + ")";
  }
  std::string text = shown[0];
  for (std::size_t i = 1; i < shown.size(); ++i) {
    text += (i + 1 == shown.size() ? " and " : ", ") + shown[i];
  }
  return text;
}

/// The alternatives that share a win, as one name.
std::string together(const Comparison& comparison, const std::vector<std::size_t>& winners) {
  std::vector<std::string> names;
  for (const std::size_t at : winners) names.push_back(comparison.alternatives[at].name);
  return names_of(names) + (names.size() > 1 ? " level" : "");
}

/// The best value of a workload and that of the best of those that did not win.
struct Margin {
  double best, next;
  std::size_t runner_up;
};

std::optional<Margin> margin_of(const ComparedMetric& metric, std::size_t workload,
                                const std::vector<std::size_t>& winners) {
  const auto& values = metric.values[workload];
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i] || std::find(winners.begin(), winners.end(), i) != winners.end()) continue;
    if (!next ||
        (metric.lower_is_better ? *values[i] < *values[*next] : *values[i] > *values[*next]))
      next = i;
  }
  if (!next) return std::nullopt;
  double best = *values[winners.front()];
  for (const std::size_t at : winners) {
    best = metric.lower_is_better ? std::min(best, *values[at]) : std::max(best, *values[at]);
  }
  return Margin{best, *values[*next], *next};
}

/// "12", "1.2", "99.3": two digits, and what is left to a hundred.
std::string percent_text(double percent) {
  const bool short_of_all = percent > 99 && percent < 100;
  return fmt::format("{:.{}f}", percent, percent < 9.95 || short_of_all ? 1 : 0);
}

/// How far ahead the best are whose ratios to the next go from `low` to `high`, both above 1.
std::string ahead(double low, double high, bool lower_is_better) {
  constexpr double kTimes = 10;
  if (!lower_is_better && high >= kTimes) {
    if (high < 1.05 * low) return fmt::format("{:.0f} times higher", high);
    return fmt::format("{}up to {:.0f} times higher", low < kTimes ? "" : "at least 10 and ", high);
  }
  const auto percent = [lower_is_better](double ratio) {
    return percent_text(100 * (lower_is_better ? 1 - 1 / ratio : ratio - 1));
  };
  const char* word = lower_is_better ? "lower" : "higher";
  return percent(low) == percent(high)
             ? fmt::format("{} % {}", percent(low), word)
             : fmt::format("{} to {} % {}", percent(low), percent(high), word);
}

/// All workloads that one set of alternatives wins.
struct Win {
  std::vector<std::size_t> winners;
  std::vector<std::size_t> workloads;
  double low = std::numeric_limits<double>::infinity(), high = 1;  ///< ratios to the next best
  std::vector<std::size_t> runners_up;
  std::vector<std::size_t> at_zero;  ///< next best with a zero, of which no ratio can be taken

  bool level() const { return runners_up.empty() && at_zero.empty(); }

  std::string margin(const Comparison& comparison, const ComparedMetric& metric) const {
    const auto names = [&comparison](const std::vector<std::size_t>& alternatives) {
      std::vector<std::string> all;
      for (const std::size_t at : alternatives) all.push_back(comparison.alternatives[at].name);
      return names_of(all);
    };
    std::string text;
    if (!runners_up.empty()) {
      text =
          fmt::format(", {} than {}", ahead(low, high, metric.lower_is_better), names(runners_up));
    }
    if (!at_zero.empty()) {
      const std::size_t zero = metric.lower_is_better ? winners.front() : at_zero.front();
      text += metric.lower_is_better ? fmt::format(", {} at 0", comparison.alternatives[zero].name)
                                     : fmt::format(", {} at 0", names(at_zero));
    }
    return text;
  }
};

std::vector<Win> wins_of(const Comparison& comparison, const ComparedMetric& metric) {
  std::vector<Win> wins;
  for (std::size_t workload = 0; workload < comparison.workloads.size(); ++workload) {
    const std::vector<std::size_t> winners = metric.winners(workload);
    if (winners.empty()) continue;
    auto win = std::find_if(wins.begin(), wins.end(),
                            [&](const Win& other) { return other.winners == winners; });
    if (win == wins.end())
      win = wins.insert(wins.end(),
                        Win{winners, {}, std::numeric_limits<double>::infinity(), 1, {}, {}});
    win->workloads.push_back(workload);
    const std::optional<Margin> margin = margin_of(metric, workload, winners);
    if (!margin) continue;
    const double worse = metric.lower_is_better ? margin->next : margin->best;
    const double better = metric.lower_is_better ? margin->best : margin->next;
    if (better > 0) {
      win->low = std::min(win->low, worse / better);
      win->high = std::max(win->high, worse / better);
    }
    auto& others = better > 0 ? win->runners_up : win->at_zero;
    if (std::find(others.begin(), others.end(), margin->runner_up) == others.end()) {
      others.push_back(margin->runner_up);
    }
  }
  return wins;
}

/// "request-rate 1 to 4" for neighbours along the one setting that varies, else their names.
std::string workloads_text(const Comparison& comparison, const std::vector<std::size_t>& at) {
  const auto& all = comparison.workloads;
  const bool one_axis =
      std::all_of(all.begin(), all.end(), [&](const Comparison::Workload& workload) {
        return workload.trace == all.front().trace && workload.load.size() == 1;
      });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::size_t last = i;
    while (one_axis && last + 1 < at.size() && at[last + 1] == at[last] + 1) ++last;
    names.push_back(last > i
                        ? fmt::format("{} to {}", all[at[i]].name, all[at[last]].load[0].second)
                        : all[at[i]].name);
    i = last;
  }
  return names_of(names);
}

/// The alternative that is among the best of every workload, or empty.
std::string steady_winner(const Comparison& comparison, const std::vector<Win>& wins) {
  for (const std::size_t at : wins[0].winners) {
    const auto has = [at](const Win& win) {
      return std::find(win.winners.begin(), win.winners.end(), at) != win.winners.end();
    };
    if (std::all_of(wins.begin(), wins.end(), has)) return comparison.alternatives[at].name;
  }
  return {};
}

/// Whether some workload has a value for two alternatives.
bool can_compare(const ComparedMetric& metric) {
  return std::any_of(metric.values.begin(), metric.values.end(), [](const auto& values) {
    return std::count_if(values.begin(), values.end(),
                         [](const auto& value) { return value.has_value(); }) > 1;
  });
}

/// What one metric says; empty when the alternatives are level everywhere.
std::string sentence(const Comparison& comparison, const ComparedMetric& metric) {
  const std::vector<Win> wins = wins_of(comparison, metric);
  const bool level =
      std::all_of(wins.begin(), wins.end(), [](const Win& win) { return win.level(); });
  if (level) return {};
  const std::string name = metric.title.substr(0, metric.title.find(','));
  if (wins.size() == 1) {
    const bool many = comparison.workloads.size() > 1;
    return fmt::format("{}: {} {}{}{}", name, together(comparison, wins[0].winners),
                       wins[0].winners.size() == 1 ? "wins" : "are best", many ? " everywhere" : "",
                       wins[0].margin(comparison, metric));
  }
  const std::string steady = steady_winner(comparison, wins);
  std::string text = steady.empty() ? fmt::format("{} flips:", name)
                                    : fmt::format("{}: {} never loses:", name, steady);
  for (std::size_t i = 0; i < wins.size(); ++i) {
    text += fmt::format("{} {} on {}{}", i > 0 ? ";" : "", together(comparison, wins[i].winners),
                        workloads_text(comparison, wins[i].workloads),
                        wins[i].margin(comparison, metric));
  }
  return text;
}

}  // namespace

std::vector<std::string> verdict_of(const Comparison& comparison) {
  std::vector<std::string> lines;
  std::vector<std::string> level;
  for (const char* key : kSpokenOf) {
    for (const ComparedMetric& metric : comparison.metrics) {
      if (metric.key != key || !can_compare(metric)) continue;
      std::string line = sentence(comparison, metric);
      if (line.empty()) {
        level.push_back(metric.title.substr(0, metric.title.find(',')));
      } else {
        lines.push_back(std::move(line));
      }
    }
  }
  if (!level.empty()) {
    lines.push_back(fmt::format("no difference above 0.5 %: {}", names_of(level)));
  }
  return lines;
}

}  // namespace servesim
