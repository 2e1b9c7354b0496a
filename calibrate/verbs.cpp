#include "verbs.hpp"

#include "core/error.hpp"

namespace servesim::calibrate {

const std::vector<Verb>& verbs() {
  static const std::vector<FlagSpec> machine{
      {"--backend", "cuda|cpu", "what is measured", "cuda", false},
      {"--device", "N", "GPU, counted as CUDA does", "0", false},
      {"--threads", "N", "threads of the CPU backend; 0: all it may use", "0", false},
      {"--seed", "N", "of the random operands", "1", false}};
  const auto with_machine = [](std::vector<FlagSpec> flags) {
    flags.insert(flags.end(), machine.begin(), machine.end());
    return flags;
  };
  static const std::vector<Verb> all{
      {"measure",
       "Measure this machine: timings, environment and, where it can be fitted, a profile", "",
       with_machine(
           {{"--out", "DIR", "folder of the results", "", true},
            {"--time-budget", "SECONDS",
             "to plan for: measuring, and what a fit takes; a busy machine may take longer", "600",
             false},
            {"--datasheet", "PROFILE",
             "of a GPU: profile whose datasheet blocks are kept; known GPUs find theirs", "",
             false},
            {"--plan", "", "print what would be measured and stop", "", false}})},
      {"fit",
       "Fit a profile to timings: of a measured folder, or of published tables",
       "",
       {{"--timings", "DIR", "folder that `calibrate measure` wrote", "", false},
        {"--gemm", "FILE", "CSV: gpu,engine,dtype,m,n,k,latency_us", "", false},
        {"--attention-decode", "FILE",
         "CSV: gpu,engine,kv_dtype,batch,ctx,heads,kv_heads,head_dim,latency_us", "", false},
        {"--attention-prefill", "FILE",
         "CSV: gpu,engine,kv_dtype,batch,isl,past_tokens,heads,kv_heads,head_dim,latency_us", "",
         false},
        {"--collectives", "FILE", "CSV: gpu,impl,op,dtype,n_gpus,bytes,latency_us", "", false},
        {"--gpu", "NAME", "take rows whose gpu begins with this, case ignored; default all", "",
         false},
        {"--datasheet", "PROFILE",
         "profile whose datasheet and host blocks are kept; kernel blocks are not read", "", false},
        {"--out", "FILE", "profile to write", "", true},
        {"--data-source", "TEXT", "how the profile names the timings", "the given timings", false},
        {"--no-table", "", "no correction table by m on top of the GEMM forms", "", false},
        {"--table-by-n", "", "a second table by n: closer to the rows given, not to others", "",
         false}}},
      {"derive",
       "Derive a profile for a GPU without measurements",
       "",
       {{"--from", "PROFILE", "a fitted profile, by name or path", "", true},
        {"--datasheet", "PROFILE", "as for fit", "", true},
        {"--out", "FILE", "profile to write", "", true}}},
      {"check", "Compare a profile with fresh timings and with the datasheet", "PROFILE",
       with_machine({{"--time-budget", "SECONDS", "to plan the timings for", "30", false},
                     {"--json", "FILE", "what was found, for programs", "", false}})}};
  return all;
}

std::unique_ptr<Backend> backend_of(const Flags& flags) {
  const std::string name = flags.text("--backend");
  const auto seed = static_cast<std::uint64_t>(flags.number("--seed", 0, 1e15));
  if (name == "cpu") {
    return make_cpu_backend(static_cast<int>(flags.number("--threads", 0, 4096)), seed);
  }
  if (name != "cuda") throw InputError("--backend '" + name + "': accepted are cuda and cpu");
  return make_cuda_backend(static_cast<int>(flags.number("--device", 0, 1023)), seed);
}

}  // namespace servesim::calibrate
