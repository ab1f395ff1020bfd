/* In the place of libFuzzer: runs a fuzzer on files, and on all files of folders. */
#include <dirent.h>

#include "fuzz.h"

static int count;

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = 0;
    EXPECT(file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0);
    rewind(file);
    data = malloc((size_t)size + !size); /* no longer than it is, for sanitizers */
    EXPECT(data && fread(data, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one is the one that failed */
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    count++;
}

static void run_folder(DIR *folder, const char *path)
{
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            run_file(file);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder)
            run_folder(folder, argv[i]);
        else
            run_file(argv[i]);
        if (folder)
            closedir(folder);
    }
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
