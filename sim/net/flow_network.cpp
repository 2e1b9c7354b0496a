#include "net/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servesim {
namespace {

/// The moment `bytes` from now on, to the nearest nanosecond; never when that is beyond what a
/// simulation lasts.
SimTime after(SimTime now, double bytes, double bytes_per_s) {
  constexpr double kLongest = 4e9;
  const double seconds = std::max(bytes, 0.0) / bytes_per_s;
  return seconds < kLongest ? now + SimTime::from_seconds(seconds) : SimTime::max();
}

}  // namespace

FlowNetwork::FlowNetwork(const Topology& topology)
    : paths_(topology), arcs_(2 * topology.links().size()), links_(topology.links().size()) {
  for (const Link& link : topology.links()) full_.push_back(link.bytes_per_s);
  for (ArcId arc = 0; arc < arcs_.size(); ++arc) arcs_[arc].bytes_per_s = full_[link_of(arc)];
}

const std::vector<FlowNetwork::RouteId>& FlowNetwork::routes_between(VertexId from, VertexId to) {
  const std::uint64_t key = (static_cast<std::uint64_t>(from) << 32) | to;
  const auto [entry, added] = pairs_.try_emplace(key);
  if (!added) return entry->second;
  for (Path& path : paths_.between(from, to)) {
    entry->second.push_back(static_cast<RouteId>(routes_.size()));
    routes_.emplace_back().path = std::move(path);
  }
  return entry->second;
}

FlowId FlowNetwork::make_flow(double bytes, std::uint64_t tag, SimTime now) {
  FlowId id;
  if (unused_.empty()) {
    id = static_cast<FlowId>(flows_.size());
    flows_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
    flows_[id] = Flow{};
  }
  flows_[id].tag = tag;
  flows_[id].bytes = bytes;
  flows_[id].begin = now;
  flows_[id].live = true;
  return id;
}

void FlowNetwork::drop(FlowId flow) {
  flows_[flow].live = false;
  unused_.push_back(flow);
}

std::optional<FlowId> FlowNetwork::start(VertexId from, VertexId to, double bytes,
                                         std::uint64_t tag, SimTime now) {
  const std::vector<RouteId>& routes = routes_between(from, to);
  if (routes.empty()) return std::nullopt;
  RouteId best = routes.front();
  double best_s = std::numeric_limits<double>::infinity();
  for (const RouteId route : routes) {
    const Path& path = routes_[route].path;
    const double seconds = path.latency.seconds() + bytes / path.bytes_per_s;
    if (seconds < best_s) {
      best_s = seconds;
      best = route;
    }
  }
  const FlowId id = make_flow(bytes, tag, now);
  Flow& flow = flows_[id];
  flow.route = best;
  Route& route = routes_[best];
  if (route.path.arcs.empty() || bytes <= 0) {  // nothing to share
    flow.sent = true;
    flow.landing = events_.push(now + route.path.latency, EventClass::kTransferDone, {true, id});
    return id;
  }
  if (route.flows.empty()) {
    enter(best, now);
  } else {
    serve(route, now);
  }
  flow.due = route.flows.push({route.served + bytes, sequence_++, id});
  rebalance(route.path.arcs, now);
  return id;
}

/// A route gets its first flow.
void FlowNetwork::enter(RouteId id, SimTime now) {
  Route& route = routes_[id];
  route.served = 0;
  route.rate = 0;
  route.updated = now;
  route.event = events_.push(SimTime::max(), EventClass::kTransferDone, {false, id});
  for (const ArcId arc : route.path.arcs) {
    arcs_[arc].routes.push_back(id);
    LinkState& link = links_[link_of(arc)];
    if (link.routes++ == 0) link.busy_since = now;
  }
}

/// A route has lost its last flow.
void FlowNetwork::leave(RouteId id, SimTime now) {
  Route& route = routes_[id];
  events_.cancel(route.event);
  for (const ArcId arc : route.path.arcs) {
    std::vector<RouteId>& routes = arcs_[arc].routes;
    routes.erase(std::find(routes.begin(), routes.end(), id));
    LinkState& link = links_[link_of(arc)];
    if (--link.routes == 0) link.stats.busy += now - link.busy_since;
  }
}

void FlowNetwork::serve(Route& route, SimTime now) const {
  route.served += route.rate * (now - route.updated).seconds();
  route.updated = now;
}

std::optional<FlowDone> FlowNetwork::take(SimTime now) {
  while (!events_.empty() && events_.top().time <= now) {
    const auto event = events_.top();
    if (!event.payload.landing) {
      finish_sending(event.payload.id, event.time);
      continue;
    }
    events_.pop();
    const FlowId id = event.payload.id;
    const Flow& flow = flows_[id];
    for (const ArcId arc : routes_[flow.route].path.arcs) {
      LinkStats& stats = links_[link_of(arc)].stats;
      ++stats.flows;
      stats.bytes += flow.bytes;
      stats.transfer_ms.push_back(static_cast<float>((event.time - flow.begin).ms()));
    }
    const FlowDone done{id,         flow.tag,   flow.bytes,
                        flow.begin, event.time, routes_[flow.route].path.arcs};
    drop(id);
    return done;
  }
  return std::nullopt;
}

/// The flow of `id` that has least left is sent.
void FlowNetwork::finish_sending(RouteId id, SimTime now) {
  Route& route = routes_[id];
  serve(route, now);
  const FlowId first = route.flows.top().flow;
  route.flows.pop();
  flows_[first].sent = true;
  flows_[first].landing =
      events_.push(now + route.path.latency, EventClass::kTransferDone, {true, first});
  if (route.flows.empty()) leave(id, now);
  rebalance(routes_[id].path.arcs, now);
}

void FlowNetwork::cancel(FlowId id, SimTime now) {
  Flow& flow = flows_[id];
  if (!flow.live) return;
  if (flow.sent) {
    events_.cancel(flow.landing);
  } else {
    Route& route = routes_[flow.route];
    route.flows.erase(flow.due);
    if (route.flows.empty()) leave(flow.route, now);
    rebalance(route.path.arcs, now);
  }
  drop(id);
}

std::vector<std::uint64_t> FlowNetwork::set_bandwidth(LinkId link, double factor, SimTime now) {
  std::vector<std::uint64_t> lost;
  const bool up = factor > 0;
  if (!up) {
    for (FlowId id = 0; id < flows_.size(); ++id) {
      if (!flows_[id].live) continue;
      const std::vector<ArcId>& arcs = routes_[flows_[id].route].path.arcs;
      if (std::none_of(arcs.begin(), arcs.end(),
                       [link](ArcId arc) { return link_of(arc) == link; })) {
        continue;
      }
      lost.push_back(flows_[id].tag);
      cancel(id, now);
    }
  }
  for (const ArcId arc : {2 * link, 2 * link + 1}) arcs_[arc].bytes_per_s = factor * full_[link];
  rebalance({2 * link, 2 * link + 1}, now);
  if (paths_.is_up(link) != up) {
    paths_.set_up(link, up);
    pairs_.clear();  // flows keep the routes they are on
  }
  return lost;
}

/// Gives new rates to all flows that share a link with `seeds`, directly or through others.
void FlowNetwork::rebalance(const std::vector<ArcId>& seeds, SimTime now) {
  collect(seeds);
  if (touched_routes_.empty()) return;
  for (const RouteId id : touched_routes_) {
    serve(routes_[id], now);
    routes_[id].frozen = false;
  }
  fill();
  for (const RouteId id : touched_routes_) schedule(routes_[id], now);
}

void FlowNetwork::collect(const std::vector<ArcId>& seeds) {
  ++visits_;
  touched_arcs_.clear();
  touched_routes_.clear();
  const auto visit = [this](ArcId arc) {
    if (arcs_[arc].visit == visits_) return;
    arcs_[arc].visit = visits_;
    touched_arcs_.push_back(arc);
  };
  for (const ArcId arc : seeds) visit(arc);
  for (std::size_t next = 0; next < touched_arcs_.size(); ++next) {
    for (const RouteId id : arcs_[touched_arcs_[next]].routes) {
      if (routes_[id].visit == visits_) continue;
      routes_[id].visit = visits_;
      touched_routes_.push_back(id);
      for (const ArcId arc : routes_[id].path.arcs) visit(arc);
    }
  }
}

/// Progressive filling: the link with the least for each of its flows decides their rate; what they
/// take is gone for the others.
void FlowNetwork::fill() {
  for (const ArcId id : touched_arcs_) {
    ArcState& arc = arcs_[id];
    arc.left = arc.bytes_per_s;
    arc.open = 0;
    for (const RouteId route : arc.routes) arc.open += routes_[route].flows.size();
  }
  while (true) {
    const ArcState* narrowest = nullptr;
    double share = std::numeric_limits<double>::infinity();
    for (const ArcId id : touched_arcs_) {
      const ArcState& arc = arcs_[id];
      if (arc.open == 0) continue;
      const double its = std::max(arc.left, 0.0) / static_cast<double>(arc.open);
      if (its < share) {
        share = its;
        narrowest = &arc;
      }
    }
    if (narrowest == nullptr) return;
    for (const RouteId id : narrowest->routes) {
      Route& route = routes_[id];
      if (route.frozen) continue;
      route.frozen = true;
      route.rate = share;
      const std::size_t count = route.flows.size();
      for (const ArcId at : route.path.arcs) {
        arcs_[at].left -= share * static_cast<double>(count);
        arcs_[at].open -= count;
      }
    }
  }
}

/// Sets when the first of a route's flows is sent.
void FlowNetwork::schedule(Route& route, SimTime now) {
  const double left = route.flows.top().served - route.served;
  events_.move(route.event, after(now, left, route.rate));
}

std::vector<LinkStats> FlowNetwork::stats(SimTime now) const {
  std::vector<LinkStats> all;
  for (const LinkState& link : links_) {
    all.push_back(link.stats);
    if (link.routes > 0) all.back().busy += now - link.busy_since;
  }
  return all;
}

double FlowNetwork::rate_of(FlowId flow) const {
  return flows_[flow].live && !flows_[flow].sent ? routes_[flows_[flow].route].rate : 0;
}

}  // namespace servesim
