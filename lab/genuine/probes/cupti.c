// SPDX-License-Identifier: Apache-2.0
// CUPTI: it subscribes to the driver's and the runtime's calls, before and after the driver has started.
#include "probe.h"

DECLARE(int, cuptiGetVersion, unsigned*);
DECLARE(int, cuptiSubscribe, void**, void*, void*);
DECLARE(int, cuptiEnableDomain, unsigned, void*, int);
DECLARE(int, cuptiUnsubscribe, void*);
DECLARE(int, cuptiActivityEnable, int);
DECLARE(int, cuptiActivityFlushAll, unsigned);

static void on_call(void* data, int domain, unsigned id, const void* details) {
    (void)data, (void)domain, (void)id, (void)details;
}

int main(void) {
    unsigned version = 0;
    void* subscriber = NULL;
    SHOW(cuptiGetVersion, &version);
    printf("version %u\n", version);
    for (int again = 0; again < 2; ++again) {
        SHOW(cuptiSubscribe, &subscriber, (void*)on_call, NULL);
        SHOW(cuptiEnableDomain, 1, subscriber, 1);
        SHOW(cuptiEnableDomain, 1, subscriber, 2);
        SHOW(cuptiActivityEnable, 3);
        SHOW(cuptiActivityFlushAll, 0);
        SHOW(cuptiUnsubscribe, subscriber);
        void* driver = dlopen("libcuda.so.1", RTLD_NOW);
        int (*start)(unsigned) = driver == NULL ? NULL : (int (*)(unsigned))dlsym(driver, "cuInit");
        printf("cuInit %d\n", start == NULL ? -1 : start(0));
        fflush(stdout);
    }
    return 0;
}
