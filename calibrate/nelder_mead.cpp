#include "nelder_mead.hpp"

#include <algorithm>
#include <cstddef>

namespace servesim::calibrate {
namespace {

using Point = std::vector<double>;
using Loss = std::function<double(const Point&)>;

struct Vertex {
  Point at;
  double loss;
};

/// from + t * (to - from).
Point along(const Point& from, const Point& to, double t) {
  Point point(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) point[i] = from[i] + t * (to[i] - from[i]);
  return point;
}

Point centre_but_last(const std::vector<Vertex>& simplex) {
  Point centre(simplex[0].at.size(), 0);
  const double share = 1 / static_cast<double>(simplex.size() - 1);
  for (std::size_t v = 0; v + 1 < simplex.size(); ++v) {
    for (std::size_t i = 0; i < centre.size(); ++i) centre[i] += share * simplex[v].at[i];
  }
  return centre;
}

void sort(std::vector<Vertex>& simplex) {
  std::stable_sort(simplex.begin(), simplex.end(),
                   [](const Vertex& a, const Vertex& b) { return a.loss < b.loss; });
}

void shrink(const Loss& loss, std::vector<Vertex>& simplex) {
  for (std::size_t v = 1; v < simplex.size(); ++v) {
    simplex[v].at = along(simplex[0].at, simplex[v].at, 0.5);
    simplex[v].loss = loss(simplex[v].at);
  }
}

void move(const Loss& loss, std::vector<Vertex>& simplex) {
  sort(simplex);
  Vertex& worst = simplex.back();
  const Point centre = centre_but_last(simplex);
  const auto probe = [&](double t) {
    Point at = along(centre, worst.at, t);
    const double value = loss(at);
    return Vertex{std::move(at), value};
  };
  Vertex reflected = probe(-1);
  if (reflected.loss < simplex[0].loss) {
    Vertex expanded = probe(-2);
    worst = expanded.loss < reflected.loss ? std::move(expanded) : std::move(reflected);
  } else if (reflected.loss < simplex[simplex.size() - 2].loss) {
    worst = std::move(reflected);
  } else {
    Vertex contracted = probe(reflected.loss < worst.loss ? -0.5 : 0.5);
    if (contracted.loss < std::min(reflected.loss, worst.loss)) {
      worst = std::move(contracted);
    } else {
      shrink(loss, simplex);
    }
  }
}

}  // namespace

std::vector<double> minimise(const Loss& loss, Point start, int restarts, int steps) {
  Vertex best{std::move(start), 0};
  best.loss = loss(best.at);
  for (int restart = 0; restart < restarts; ++restart) {
    const double step = restart % 2 == 0 ? 0.25 : -0.15;
    std::vector<Vertex> simplex{best};
    for (std::size_t i = 0; i < best.at.size(); ++i) {
      Point at = best.at;
      at[i] += step;
      const double value = loss(at);
      simplex.push_back({std::move(at), value});
    }
    for (int i = 0; i < steps; ++i) move(loss, simplex);
    sort(simplex);
    if (simplex[0].loss < best.loss) best = simplex[0];
  }
  return best.at;
}

}  // namespace servesim::calibrate
