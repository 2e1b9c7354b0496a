#include "workload/load.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace servesim {
namespace {

void require_positive(std::string_view flag, double value, bool infinity_accepted) {
  const bool accepted = value > 0 && (std::isfinite(value) || infinity_accepted);
  if (accepted && !std::isnan(value)) return;
  throw InputError(fmt::format("{}: {} is not accepted; a number greater than 0{} is", flag, value,
                               infinity_accepted ? " or inf" : ""));
}

class FirstReader final : public TraceReader {
 public:
  FirstReader(std::unique_ptr<TraceReader> inner, std::uint64_t count)
      : inner_(std::move(inner)), left_(count) {}

  bool next(Request& request) override {
    if (left_ == 0) return false;
    --left_;
    return inner_->next(request);
  }

 private:
  std::unique_ptr<TraceReader> inner_;
  std::uint64_t left_;
};

class ScaledReader final : public TraceReader {
 public:
  ScaledReader(std::unique_ptr<TraceReader> inner, double scale)
      : inner_(std::move(inner)), scale_(scale) {}

  bool next(Request& request) override {
    if (!inner_->next(request)) return false;
    request.arrival = scaled(request.arrival);
    request.delay = scaled(request.delay);
    return true;
  }

 private:
  SimTime scaled(SimTime time) const {
    constexpr double kMostNs = 4e18;
    const double ns = static_cast<double>(time.ns()) * scale_;
    if (ns > kMostNs) {
      throw InputError(
          fmt::format("--time-scale: {} makes a time of the trace {} s, more than can "
                      "be simulated",
                      scale_, ns * 1e-9));
    }
    return SimTime(std::llround(ns));
  }

  std::unique_ptr<TraceReader> inner_;
  double scale_;
};

class RateReader final : public TraceReader {
 public:
  RateReader(std::unique_ptr<TraceReader> inner, double requests_per_s, double burstiness,
             std::uint64_t seed)
      : inner_(std::move(inner)),
        rate_(requests_per_s),
        burstiness_(burstiness),
        rng_(seed, "workload.arrivals") {}

  bool next(Request& request) override {
    if (!inner_->next(request)) return false;
    if (request.closed_loop) return true;
    request.arrival = std::isinf(rate_) ? SimTime() : next_arrival();
    return true;
  }

 private:
  SimTime next_arrival() {
    constexpr double kLatestS = 4e9;
    // A gamma distribution of shape 1 is the exponential one, which is cheaper to draw from.
    const double gap =
        burstiness_ == 1 ? rng_.exponential() : rng_.gamma(burstiness_) / burstiness_;
    arrival_s_ += gap / rate_;
    if (arrival_s_ > kLatestS) {
      throw InputError(
          fmt::format("--request-rate: at {} requests/s the trace takes longer than "
                      "can be simulated",
                      rate_));
    }
    return SimTime::from_seconds(arrival_s_);
  }

  std::unique_ptr<TraceReader> inner_;
  double rate_;
  double burstiness_;
  double arrival_s_ = 0;
  Rng rng_;
};

}  // namespace

std::unique_ptr<TraceReader> take_first(std::unique_ptr<TraceReader> trace, std::uint64_t count) {
  return std::make_unique<FirstReader>(std::move(trace), count);
}

std::unique_ptr<TraceReader> scale_time(std::unique_ptr<TraceReader> trace, double scale) {
  require_positive("--time-scale", scale, false);
  return std::make_unique<ScaledReader>(std::move(trace), scale);
}

std::unique_ptr<TraceReader> replace_arrivals(std::unique_ptr<TraceReader> trace,
                                              double requests_per_s, double burstiness,
                                              std::uint64_t seed) {
  require_positive("--request-rate", requests_per_s, true);
  require_positive("--burstiness", burstiness, false);
  return std::make_unique<RateReader>(std::move(trace), requests_per_s, burstiness, seed);
}

std::unique_ptr<TraceReader> apply_load(std::unique_ptr<TraceReader> trace,
                                        const LoadOptions& options) {
  if (options.num_prompts > 0) trace = take_first(std::move(trace), options.num_prompts);
  if (options.time_scale != 1.0) trace = scale_time(std::move(trace), options.time_scale);
  if (options.request_rate) {
    trace =
        replace_arrivals(std::move(trace), *options.request_rate, options.burstiness, options.seed);
  }
  return trace;
}

}  // namespace servesim
