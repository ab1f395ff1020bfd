# Puts a program of OpenCL C behind others in one source: all that it names at file scope gets a
# prefix, and kernels that are not wanted are left out. Its input has been preprocessed.
#     awk -v prefix=p001_ -v kernels="copy fill" -f one_source.awk
BEGIN {
    count = solids = chunk = depth = parens = 0
    split(kernels, list, " ")
    for (i in list)
        wanted[list[i]] = 1
}

# Every token, blanks too; a line with a directive is one.
/^[ \t]*#/ {
    token[count++] = $0 "\n"
    next
}
{
    line = $0 "\n"
    while (line != "") {
        if (!match(line, /^[A-Za-z_][A-Za-z_0-9]*/) && !match(line, /^[0-9][A-Za-z_0-9.]*/))
            match(line, /^./) || match(line, /^\n/)
        token[count] = substr(line, 1, RLENGTH)
        line = substr(line, RLENGTH + 1)
        if (token[count++] !~ /^[ \t\n]$/)
            solid[solids++] = count - 1
    }
}

function is_name(text) {
    return text ~ /^[A-Za-z_]/ && text != "__attribute__"
}

# chunk: where the declaration at hand began
END {
    for (i = 0; i < solids; i++) {
        this = token[solid[i]]
        next_one = i + 1 < solids ? token[solid[i + 1]] : ""
        before = i > 0 ? token[solid[i - 1]] : ""
        if (before ~ /^(struct|union|enum)$/ && is_name(this))
            ours[this] = 1
        if (this == "enum")
            constants = 1
        if (constants && before ~ /^[{,]$/ && is_name(this))
            ours[this] = 1
        if (this == "}")
            constants = 0
        if (depth == 0 && parens == 0) {
            if (is_name(this) && next_one ~ /^[(\[=]$/)
                ours[this] = 1
            if (this == "=")
                has_value = 1
            if (is_name(this) && next_one == "(" && !has_value)
                called = this
            if (this == "typedef")
                is_type = 1
            if (is_type && next_one == ";")
                ours[this] = 1
            if (this == "kernel" || this == "__kernel")
                is_kernel = 1
        }
        parens += (this == "(") - (this == ")")
        depth += (this == "{") - (this == "}")
        if (depth > 0 || parens > 0 || !(this == ";" || (this == "}" && called != "" && !has_value)))
            continue
        if (is_kernel && !(called in wanted))
            for (j = chunk; j <= solid[i]; j++)
                token[j] = ""
        chunk = solid[i] + 1
        called = ""
        is_kernel = is_type = has_value = 0
    }
    for (i = 0; i < count; i++)
        printf "%s%s", token[i] in ours ? prefix : "", token[i]
}
