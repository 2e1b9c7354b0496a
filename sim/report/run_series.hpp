/// What the report draws of one run: curves of bounded size, whatever the run's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace servesim {

/// A named column of figures.
struct Column {
  std::string name;
  std::vector<double> values;
};

/// Means over bins of equal width. Columns have a value per bin.
struct OverTime {
  double start_s = 0;  ///< of the first bin, after the first arrival
  double bin_s = 0;
  std::vector<Column> columns;
};

/// The distribution of a latency: values_ms[i] is the quantile shares[i].
struct Cdf {
  std::string name;  ///< "ttft", "tpot", "itl", "e2el"
  std::vector<double> shares, values_ms;
};

/// Latencies of the requests that arrived in a bin. NaN where there was none.
struct LatencyOverTime {
  bool by_first_token = false;  ///< bins of the first token, not of the arrival
  OverTime bins;                ///< requests, and {ttft,tpot}_{p50,p99,max} in milliseconds
  std::vector<Column> points;   ///< time_s, ttft, tpot of single requests: all, or every n-th
  std::int64_t every = 1;
};

/// A step, or the mean of a stretch of equal ones.
struct StepSample {
  double time_s = 0;
  std::int64_t steps = 1;
  double seconds = 0;  ///< of one step on the device
  double flops = 0, hbm_bytes = 0;
  double prefill_tokens = 0, decode_seqs = 0, context = 0;
};

/// Samples of one kind of step: all, or every n-th piece.
struct StepSamples {
  std::vector<StepSample> samples;
  std::int64_t every = 1;
};

struct LinkSeries {
  std::string name;
  std::vector<double> busy;  ///< share of the bandwidth, per bin of `engine`
};

struct RunSeries {
  OverTime engine;  ///< see SeriesCollector::finish()
  std::vector<LinkSeries> links;
  std::vector<Cdf> cdfs;
  LatencyOverTime latency;
  StepSamples decode_steps, prefill_steps;
};

}  // namespace servesim
