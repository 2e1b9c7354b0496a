// The fits recover what made the timings.
#include <cmath>

#include "fit_forms.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

TEST_CASE("Nelder and Mead find the minimum of a curved valley", "[calibrate]") {
  const auto rosenbrock = [](const std::vector<double>& p) {
    const double a = 1 - p[0];
    const double b = p[1] - p[0] * p[0];
    return a * a + 100 * b * b;
  };
  const std::vector<double> best = minimise(rosenbrock, {-1.2, 1}, 6, 200);
  CHECK(best[0] == Approx(1).margin(1e-3));
  CHECK(best[1] == Approx(1).margin(1e-3));
  CHECK(minimise(rosenbrock, {-1.2, 1}, 6, 200) == best);
}

TEST_CASE("an all-reduce is recovered from its own times", "[calibrate]") {
  const AllReduceAlgorithm truth{5, 200e9, 20, 2e6};
  std::vector<MeasuredAllReduce> rows;
  for (double bytes = 512; bytes < 1e9; bytes *= 2) {
    rows.push_back({MeasuredEngine::kNccl, 4, bytes, all_reduce_us(truth, bytes)});
  }
  const AlgorithmForm form;
  const auto fitted = form.fit(rows, form.start(), 8, 400);
  CHECK(mape(form, fitted.parameters, rows) < 0.01);
}

TEST_CASE("a second table takes up what depends on the number of columns", "[calibrate]") {
  GemmForm form{MachineRates{3.35e6, 132, 989.4e6}, true};
  const GemmPair truth = form.parameters(form.start());
  std::vector<MeasuredGemm> rows;
  for (double m = 1; m <= 8192; m *= 2) {
    for (double n = 1024; n <= 65536; n *= 2) {
      MeasuredGemm row{MeasuredEngine::kVllm, false, {m, n, 4096}, 0};
      row.us = form.predict(truth, row) * (n == 4096 ? 1.15 : 1.0);
      rows.push_back(row);
    }
  }
  const double by_m = mape(form, form.fit(rows, form.start(), 1, 50).parameters, rows);
  form.table_by_n = true;
  const auto fitted = form.fit(rows, form.start(), 1, 50);
  CHECK(mape(form, fitted.parameters, rows) < 0.8 * by_m);
  CHECK(correction_at(fitted.parameters.vllm.n_corrections, 4096) > 1.05);
}

TEST_CASE("GEMM times are recovered, and a table on top never falls", "[calibrate]") {
  GemmForm form{MachineRates{3.35e6, 132, 989.4e6}, true};
  const GemmPair truth = form.parameters(form.start());
  std::vector<MeasuredGemm> rows;
  for (double m = 1; m <= 8192; m *= 4) {
    for (const double n : {1024.0, 4096.0, 12288.0}) {
      MeasuredGemm row{MeasuredEngine::kVllm, false, {m, n, 4096}, 0};
      row.us = form.predict(truth, row) * (m > 100 ? 1.05 : 1.0);
      rows.push_back(row);
    }
  }
  const auto fitted = form.fit(rows, form.start(), 2, 150);
  CHECK(mape(form, fitted.parameters, rows) < 0.03);
  CHECK(fitted.parameters.vllm.n_corrections.empty());
  double last = 0;
  for (const GemmCorrection& c : fitted.parameters.vllm.corrections) {
    CHECK(c.factor >= last);
    last = c.factor;
  }
}
