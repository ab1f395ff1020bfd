/* Prints the hash that packages have of what comes on standard input: for packages.py. */
#include <stdlib.h>

#include "package/package.h"

int main(void)
{
    enum { MOST = 64 << 20 };
    char hash[PACKAGE_HASH_SIZE];
    char *data = malloc(MOST);
    if (!data)
        return 1;
    package_hash(data, fread(data, 1, MOST, stdin), hash);
    free(data);
    return puts(hash) < 0;
}
