/* healcl completion: scripts that complete command lines, out of the commands' tables of options.
 */
#include <string.h>

#include "bench/bench.h"
#include "cli/cli.h"
#include "ops/ops.h"

/* ---------------------------------------------------------------- words */

static void put_operations(void)
{
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        printf("%s%s", i > 0 ? " " : "", operations[i].name);
}

static void put_bench_operations(void)
{
    const struct bench_operation *operation;
    for (size_t i = 0; (operation = bench_operation_at(i)); i++)
        printf("%s%s", i > 0 ? " " : "", bench_operation_name(operation));
}

static const char *const *bench_choices(const char *name)
{
    for (size_t i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (strcmp(bench_parameters[i].name, name) == 0)
            return bench_parameters[i].choices;
    return NULL;
}

static bool has_words(const struct command *command, const struct command_option *option)
{
    return strcmp(option->name, "op") == 0 ||
           (command == &command_bench && bench_choices(option->name));
}

/* The words that an option takes, with blanks between them. */
static void put_words(const struct command *command, const struct command_option *option)
{
    if (strcmp(option->name, "op") != 0) {
        const char *const *choices = bench_choices(option->name);
        for (size_t i = 0; choices[i]; i++)
            printf("%s%s", i > 0 ? " " : "", choices[i]);
    } else if (command == &command_bench) {
        put_bench_operations();
    } else {
        put_operations();
    }
}

static const char *devices_of(const struct command *command)
{
    return command == &command_compare || command == &command_run ? "cpu gpu acc reference"
                                                                  : "cpu gpu acc";
}

/* ---------------------------------------------------------------- bash */

static void put_bash_names(const struct command_option *option)
{
    printf("--%s", option->name);
    if (option->letter)
        printf(" | -%c", option->letter);
}

/* What is completed behind an option that takes a value. */
static void put_bash_value(const struct command *command, const struct command_option *option)
{
    if (!option_takes_value(option))
        return;
    fputs("        ", stdout);
    put_bash_names(option);
    fputs(") ", stdout);
    switch (option->kind) {
    case OPTION_DEVICE: printf("kind=device choices='%s' ;;\n", devices_of(command)); return;
    case OPTION_REPORT:
    case OPTION_NEW_FILE:
    case OPTION_FILE: puts("kind=file ;;"); return;
    case OPTION_NEW_FOLDER:
    case OPTION_FOLDER: puts("kind=folder ;;"); return;
    default: break;
    }
    if (has_words(command, option)) {
        fputs("kind=words choices='", stdout);
        put_words(command, option);
        puts("' ;;");
    } else {
        puts("kind=nothing ;;");
    }
}

static void put_bash_operands(enum command_operands operands)
{
    switch (operands) {
    case OPERANDS_NONE: break;
    case OPERANDS_FILE:
    case OPERANDS_FILES:
    case OPERANDS_ANY: puts("        *) kind=transcript ;;"); break;
    case OPERANDS_SHELL: puts("        *) kind=words choices='bash zsh' ;;"); break;
    }
}

static void put_bash_command(const struct command *command)
{
    printf("    1:%s)\n        options='", command->name);
    for (const struct command_option *option = command->options; option->name; option++) {
        printf("%s--%s", option > command->options ? " " : "", option->name);
        if (option->letter)
            printf(" -%c", option->letter);
    }
    puts("'\n        case $option in");
    for (const struct command_option *option = command->options; option->name; option++)
        put_bash_value(command, option);
    put_bash_operands(command->operands);
    puts("        esac ;;");
}

static void put_command_names(void)
{
    for (size_t i = 0; command_at(i); i++)
        if (command_at(i)->summary)
            printf("%s%s", i > 0 ? " " : "", command_at(i)->name);
}

static const char bash_head[] =
    "# Completes command lines of healcl in bash; written by 'healcl completion bash'.\n"
    "_healcl()\n"
    "{\n"
    "    local healcl=${1:-healcl} words=() count=0 joins= word i\n"
    "    COMPREPLY=()\n"
    "    # What readline takes apart at '=' and ':' is one word again.\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $count -gt 2 && ( $word == [:=] || $joins ) ]]; then\n"
    "            words[count - 1]+=$word\n"
    "            joins=\n"
    "            [[ $word != [:=] ]] || joins=yes\n"
    "        else\n"
    "            words[count++]=$word\n"
    "        fi\n"
    "    done\n"
    "    local value=${words[count - 1]} option= options= kind= choices=\n";

static const char bash_option[] = "    if [[ $value == --*=* ]]; then\n"
                                  "        option=${value%%=*} value=${value#*=}\n"
                                  "    elif [[ $value == -?* ]]; then\n"
                                  "        option=$value\n"
                                  "    elif ((count > 2)); then\n"
                                  "        option=${words[count - 2]}\n"
                                  "    fi\n";

static const char bash_tail[] =
    "    [[ ! $option || $option != \"$value\" ]] || kind=option\n"
    "    case $kind in\n"
    "    device)\n"
    "        choices+=\" $(\"${healcl/#\\~/$HOME}\" devices --no-self-test --timeout 5 2>/dev/null "
    "|\n"
    "            sed -n 's/^\\([0-9]*:[0-9]*\\) .*/\\1/p')\"\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$value\") ;;\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$value\") ;;\n"
    "    option) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$value\") ;;\n"
    "    file) mapfile -t COMPREPLY < <(compgen -f -- \"$value\") ;;\n"
    "    folder) mapfile -t COMPREPLY < <(compgen -d -- \"$value\") ;;\n"
    "    transcript)\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$value\"\n"
    "            compgen -f -X '!*.json' -- \"$value\"\n"
    "            compgen -f -X '!*.json.gz' -- \"$value\"\n"
    "            compgen -f -X '!*.json.zst' -- \"$value\") ;;\n"
    "    esac\n"
    "    # Outside of readline, as in a test, there is nothing to be told.\n"
    "    [[ $kind != @(file|folder|transcript) ]] || compopt -o filenames 2>/dev/null\n"
    "    # Readline puts back what stands before the last ':'.\n"
    "    if [[ $value == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"${value%\"${value##*:}\"}\"}\")\n"
    "    fi\n"
    "}\n"
    "complete -F _healcl healcl\n";

static void put_bash(void)
{
    fputs(bash_head, stdout);
    fputs(bash_option, stdout);
    puts("    case $((count > 2)):${words[1]} in");
    fputs("    0:*) kind=words options='--help --version' choices='", stdout);
    put_command_names();
    puts(" help' ;;");
    fputs("    1:help) kind=words choices='", stdout);
    put_command_names();
    puts("' ;;");
    for (size_t i = 0; command_at(i); i++)
        put_bash_command(command_at(i));
    puts("    esac");
    fputs(bash_tail, stdout);
}

/* ---------------------------------------------------------------- zsh */

static void put_zsh_value(const struct command *command, const struct command_option *option)
{
    if (!option_takes_value(option))
        return;
    switch (option->kind) {
    case OPTION_DEVICE: printf(":device: _healcl_devices %s", devices_of(command)); return;
    case OPTION_REPORT:
    case OPTION_NEW_FILE:
    case OPTION_FILE: fputs(":file:_files", stdout); return;
    case OPTION_NEW_FOLDER:
    case OPTION_FOLDER: fputs(":folder:_files -/", stdout); return;
    default: break;
    }
    printf(":%s:", option->name);
    if (!has_words(command, option))
        return;
    putchar('(');
    put_words(command, option);
    putchar(')');
}

/* Whether an option can be given more than once. */
static bool repeats(const struct command *command, const struct command_option *option)
{
    return command == &command_compare &&
           (strcmp(option->name, "device") == 0 || strcmp(option->name, "baseline") == 0);
}

static void put_zsh_option(const struct command *command, const struct command_option *option)
{
    const bool takes_value = option_takes_value(option);
    const char *star = repeats(command, option) ? "*" : "";
    printf(" \\\n            '%s--%s%s", star, option->name, takes_value ? "=" : "");
    put_zsh_value(command, option);
    putchar('\'');
    if (!option->letter)
        return;
    printf(" \\\n            '%s-%c%s", star, option->letter, takes_value ? "+" : "");
    put_zsh_value(command, option);
    putchar('\'');
}

static void put_zsh_command(const struct command *command)
{
    printf("        %s) _arguments -s", command->name);
    for (const struct command_option *option = command->options; option->name; option++)
        put_zsh_option(command, option);
    switch (command->operands) {
    case OPERANDS_NONE: break;
    case OPERANDS_FILE:
        printf(" \\\n            ':transcript:_files -g \"*.json(|.gz|.zst)\"'");
        break;
    case OPERANDS_FILES:
    case OPERANDS_ANY:
        printf(" \\\n            '*:transcript:_files -g \"*.json(|.gz|.zst)\"'");
        break;
    case OPERANDS_SHELL: printf(" \\\n            ':shell:(bash zsh)'"); break;
    }
    puts(" ;;");
}

static const char zsh_head[] =
    "#compdef healcl\n"
    "# Completes command lines of healcl in zsh; written by 'healcl completion zsh'.\n"
    "_healcl_devices()\n"
    "{\n"
    "    local -a indices\n"
    "    indices=(${(f)\"$(healcl devices --no-self-test --timeout 5 2>/dev/null |\n"
    "        sed -n 's/^\\([0-9]*:[0-9]*\\) .*/\\1/p')\"})\n"
    "    compadd -- $argv $indices\n"
    "}\n"
    "_healcl()\n"
    "{\n"
    "    local state line\n"
    "    local -a commands\n"
    "    commands=(\n";

static const char zsh_arguments[] =
    "    )\n"
    "    _arguments '(- *)--help' '(- *)--version' ':command:->command' '*::argument:->argument'\n"
    "    case $state in\n"
    "    command) _describe command commands ;;\n"
    "    argument)\n"
    "        case $words[1] in\n"
    "        help) _describe command commands ;;\n";

static void put_zsh(void)
{
    fputs(zsh_head, stdout);
    for (size_t i = 0; command_at(i); i++)
        if (command_at(i)->summary)
            printf("        '%s:%s'\n", command_at(i)->name, command_at(i)->summary);
    fputs(zsh_arguments, stdout);
    for (size_t i = 0; command_at(i); i++)
        put_zsh_command(command_at(i));
    fputs("        esac ;;\n"
          "    esac\n"
          "}\n"
          "_healcl \"$@\"\n",
          stdout);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {END_OF_OPTIONS};

static int run(const struct command *command, int argc, char **argv)
{
    int code = take_arguments(command, argc, argv, NULL);
    if (code != GOES_ON)
        return code;
    if (optind == argc)
        return usage_error(command, "no shell is named: bash or zsh");
    if (optind + 1 < argc)
        return usage_error(command, "unexpected argument '%s'", argv[optind + 1]);
    if (strcmp(argv[optind], "bash") == 0)
        put_bash();
    else if (strcmp(argv[optind], "zsh") == 0)
        put_zsh();
    else
        return usage_error(command, "there is completion for bash and zsh, not for '%s'",
                           argv[optind]);
    return finish_output(EXIT_VERIFIED);
}

const struct command command_completion = {
    .name = "completion",
    .help =
        "Prints a script that completes command lines of healcl. Installing healcl puts it where\n"
        "the shells look; without that:\n"
        "\n"
        "    source <(healcl completion bash)\n"
        "    healcl completion zsh > DIR/_healcl    # DIR of zsh's fpath\n"
        "\n"
        "Usage: healcl completion bash|zsh\n"
        "\n"
        "  -h, --help  this text\n",
    .options = options,
    .operands = OPERANDS_SHELL,
    .run = run,
};
