/* Lists the functions that HEAL's SDK declares. */
#ifndef HEALCL_HEAL_SDK_FUNCTIONS_H
#define HEALCL_HEAL_SDK_FUNCTIONS_H

/* Functions on int32, int64 and double. */
#define MEMORY_FUNCTIONS(X, T) \
    X(allocate_on_hardware, T) \
    X(host_to_device, T)       \
    X(device_to_host, T)       \
    X(make_contiguous, T)      \
    X(expand, T)               \
    X(squeeze, T)              \
    X(unsqueeze, T)

/* Functions on int32 and int64. */
#define COMPUTE_FUNCTIONS(X, T) \
    X(modmul_ttt, T)            \
    X(modmul_ttc, T)            \
    X(modmul_tct, T)            \
    X(modmul_tcc, T)            \
    X(modsum_ttt, T)            \
    X(modsum_ttc, T)            \
    X(modsum_tct, T)            \
    X(modsum_tcc, T)            \
    X(mod_tt, T)                \
    X(mod_tc, T)                \
    X(mod_ct, T)                \
    X(axis_modsum, T)           \
    X(g_decomposition, T)       \
    X(ntt, T)                   \
    X(intt, T)                  \
    X(permute, T)

#endif
