// SPDX-License-Identifier: Apache-2.0
#pragma once
/* As much of Slurm's interface for plugins as integrations/slurm/cuslice.c uses, for tests where Slurm's headers
   aren't: names and types as Slurm documents them, numbers of our own. */
typedef struct spank_stub* spank_t;
typedef enum { ESPANK_SUCCESS, ESPANK_ERROR, ESPANK_ENV_NOEXIST } spank_err_t;
typedef enum { S_CTX_ERROR, S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_ALLOCATOR } spank_context_t;
typedef enum { S_JOB_UID, S_JOB_GID, S_JOB_ID, S_JOB_LOCAL_TASK_COUNT, S_TASK_ID } spank_item_t;
typedef int (*spank_opt_cb_f)(int, const char*, int);
struct spank_option {
    const char *name, *arginfo, *usage;
    int has_arg, val;
    spank_opt_cb_f cb;
};
#define SPANK_PLUGIN(name, version) const char plugin_name[] = #name;

spank_context_t spank_context(void);
spank_err_t spank_option_register(spank_t spank, struct spank_option* option);
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...);
spank_err_t spank_getenv(spank_t spank, const char* name, char* value, int size);
spank_err_t spank_setenv(spank_t spank, const char* name, const char* value, int overwrite);
spank_err_t spank_unsetenv(spank_t spank, const char* name);
void slurm_info(const char* format, ...);
void slurm_error(const char* format, ...);
void slurm_spank_log(const char* format, ...);
