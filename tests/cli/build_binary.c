/*
 * An offline compiler, for emit.py: builds a source on the device that the environment's
 * HEALCL_DEVICE names, as "0:1", and writes its binary.
 *
 *     build_binary SOURCE.cl -o BINARY
 */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#define NEED(condition)                                                \
    do {                                                               \
        if (!(condition)) {                                            \
            fprintf(stderr, "build_binary: not so: %s\n", #condition); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

enum { MOST = 16, SOURCE_BYTES = 16 << 20 };

static cl_device_id find_device(void)
{
    cl_platform_id platforms[MOST];
    cl_device_id devices[MOST];
    unsigned platform = 0, device = 0;
    cl_uint count = 0;
    const char *index = getenv("HEALCL_DEVICE");
    NEED(index && sscanf(index, "%2u:%2u", &platform, &device) == 2);
    NEED(clGetPlatformIDs(MOST, platforms, &count) == CL_SUCCESS && platform < count);
    NEED(clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, MOST, devices, &count) ==
             CL_SUCCESS &&
         device < count);
    return devices[device];
}

static void write_binary(cl_program program, const char *path)
{
    size_t bytes = 0;
    NEED(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) ==
         CL_SUCCESS);
    unsigned char *binary = malloc(bytes);
    NEED(binary);
    NEED(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
         CL_SUCCESS);
    FILE *file = fopen(path, "w");
    NEED(file && fwrite(binary, 1, bytes, file) == bytes && fclose(file) == 0);
    free(binary);
}

int main(int argc, char **argv)
{
    NEED(argc == 4);
    cl_int code = CL_SUCCESS;
    cl_device_id device = find_device();
    char *text = calloc(1, SOURCE_BYTES);
    FILE *file = fopen(argv[1], "r");
    NEED(text && file && fread(text, 1, SOURCE_BYTES - 1, file) > 0);
    fclose(file);
    const char *texts[] = {text};
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    NEED(code == CL_SUCCESS);
    cl_program program = clCreateProgramWithSource(context, 1, texts, NULL, &code);
    NEED(code == CL_SUCCESS);
    NEED(clBuildProgram(program, 1, &device, "-cl-std=CL1.2 -w", NULL, NULL) == CL_SUCCESS);
    write_binary(program, argv[3]);
    clReleaseProgram(program);
    clReleaseContext(context);
    free(text);
    return 0;
}
