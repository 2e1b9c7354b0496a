#include "validation/scatter_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace servesim {
namespace {

constexpr double kSide = 560;
constexpr double kMargin = 60;
constexpr std::array kColours{"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                              "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

/// Decades that the plot spans, the same on both axes.
struct Scale {
  double low = 0;
  double high = 1;
  double at(double value) const {
    return kMargin + (std::log10(value) - low) / (high - low) * kSide;
  }
  double x(double value) const { return at(value); }
  double y(double value) const { return kSide + 2 * kMargin - at(value); }
};

std::string line(const Scale& s, double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" style=\"{}\"/>\n", s.x(x1),
      s.y(y1), s.x(x2), s.y(y2), style);
}

std::string axes(const Scale& s) {
  std::string svg;
  const double low = std::pow(10, s.low);
  const double high = std::pow(10, s.high);
  for (double decade = s.low; decade <= s.high; ++decade) {
    const double value = std::pow(10, decade);
    svg += line(s, value, low, value, high, "stroke:#ddd");
    svg += line(s, low, value, high, value, "stroke:#ddd");
    const std::string text = fmt::format("{:g}", value);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       s.x(value), s.y(low) + 18, text);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       s.x(low) - 6, s.y(value) + 4, text);
  }
  svg += line(s, low, low, high, high, "stroke:#333");
  svg += line(s, low * 1.1, low, high, high / 1.1, "stroke:#999;stroke-dasharray:4");
  svg += line(s, low, low * 1.1, high / 1.1, high, "stroke:#999;stroke-dasharray:4");
  return svg;
}

}  // namespace

std::string scatter_svg(const std::vector<ValidationPoint>& points, const std::string& section) {
  std::map<std::string, std::vector<const ValidationPoint*>> series;
  double low = 1e300;
  double high = 0;
  for (const ValidationPoint& p : points) {
    if (p.section != section || !(p.measured > 0) || !(p.predicted > 0)) continue;
    series[p.series].push_back(&p);
    low = std::min({low, p.measured, p.predicted});
    high = std::max({high, p.measured, p.predicted});
  }
  if (series.empty()) return {};
  const Scale scale{std::floor(std::log10(low)), std::ceil(std::log10(high) + 1e-9)};
  const double size = kSide + 2 * kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {0}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{0}\" fill=\"white\"/>\n",
      size);
  svg += axes(scale);
  std::size_t colour = 0;
  for (const auto& [name, members] : series) {
    const char* fill = kColours[colour % kColours.size()];
    svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{} ({})</text>\n", kMargin + 10,
                       kMargin + 16 + 16 * static_cast<double>(colour), fill, name, members.size());
    svg += fmt::format("<g fill=\"{}\" fill-opacity=\"0.5\">\n", fill);
    for (const ValidationPoint* p : members) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", scale.x(p->measured),
                         scale.y(p->predicted));
    }
    svg += "</g>\n";
    ++colour;
  }
  svg += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">measured</text>\n"
      "<text x=\"16\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {0})\">predicted"
      "</text>\n<text x=\"{0}\" y=\"28\" text-anchor=\"middle\" font-size=\"16\">{2}: predicted "
      "against measured, 10 % lines</text>\n</svg>\n",
      size / 2, size - 14, section);
  return svg;
}

}  // namespace servesim
