#!/usr/bin/env python3
"""Disaggregated against chunked on the Mooncake conversation trace, at equal GPU count.

Runs `simulate` over request rates and prints the tables of README.md.
Usage: study.py SIMULATE CONVERSATION_TRACE
"""
import json
import subprocess
import sys

RATES = "0.5,1,1.5,2,2.5,3"
ENGINE = "--model llama-3.1-70b --tensor-parallel-size 4 --router prefix-aware"
SLOS = {"tight": (10000, 25), "loose": (30000, 100)}  # TTFT and TPOT in ms
SPLIT = "--policy disaggregated --prefill-replicas {} --decode-replicas {} --kv-link {} --kv-transfer {}"
SETUPS = {"chunked, 4 replicas": "--policy chunked --replicas 4"}
for p, d in ((3, 1), (2, 2)):
    for link, transfer in (("nvlink4", "pull"), ("ib-ndr400", "pull"), ("100gbe", "pull"), ("100gbe", "push")):
        how = link if transfer == "pull" else f"{link}, push"
        SETUPS[f"{p} prefill + {d} decode, {how}"] = SPLIT.format(p, d, link, transfer)


def runs(simulate, trace, setup, slo):
    ttft, tpot = SLOS[slo]
    command = [simulate, "--trace", trace, *ENGINE.split(), *setup.split(), "--request-rate", RATES,
               "--goodput", f"ttft:{ttft}", f"tpot:{tpot}", "--seed", "1", "--json", "-", "--no-progress"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["runs"]


def table(title, columns, rows):
    print(f"\n{title}\n\n| setup | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name, values in rows:
        print(f"| {name} | {' | '.join(values)} |")


def main(simulate, trace):
    results = {slo: {name: runs(simulate, trace, setup, slo) for name, setup in SETUPS.items()} for slo in SLOS}
    rates = [f"{rate}/s" for rate in RATES.split(",")]
    for slo, (ttft, tpot) in SLOS.items():
        cells = {name: [run["request_goodput"] for run in all_rates] for name, all_rates in results[slo].items()}
        best = [max(column) for column in zip(*cells.values())]
        rows = [(name, [f"**{v:.2f}**" if v >= b - 0.005 else f"{v:.2f}" for v, b in zip(values, best)])
                for name, values in cells.items()]
        table(f"Goodput, requests/s that met TTFT {ttft / 1000:.0f} s and TPOT {tpot} ms:", rates, rows)
    split = [(name, all_rates) for name, all_rates in results["tight"].items() if "kv_transfer" in all_rates[0]]
    table("Mean wait for KV in ms (push: the prefill's time is in it) / share of the time the busiest link was in use:",
          rates,
          [(name, [f"{run['kv_transfer']['mean_wait_ms']:.0f} / "
                   f"{100 * max(link['busy_fraction'] for link in run['links']):.0f} %" for run in all_rates])
           for name, all_rates in split])
    table("Mean TTFT in s / mean TPOT in ms:", rates,
          [(name, [f"{run['mean_ttft_ms'] / 1000:.1f} / {run['mean_tpot_ms']:.0f}" for run in all_rates])
           for name, all_rates in results["tight"].items()])


if __name__ == "__main__":
    main(*sys.argv[1:])
