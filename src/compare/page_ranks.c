/* What ranks of healcl-mpi did, on a comparison's page: a table for each report. */
#include "compare/html.h"
#include "compare/page.h"

static void put_row(const struct page *page, const struct compare_ranks *ranks,
                    const struct compare_rank *rank)
{
    char name[RANK_TEXT_SIZE];
    html_print(page->stream, "<tr><th scope=\"row\"><span class=\"name\">%s%s</span>",
               rank->is_all ? "" : "Rank ", rank->is_all ? "All" : compare_rank_name(rank, name));
    if (*rank->host || *rank->device)
        html_print(page->stream, "<small>%s%s%s</small>", rank->host,
                   *rank->host && *rank->device ? ", " : "", rank->device);
    fputs("</th>", page->stream);
    FOR_EACH_OF_RANKS(column, ranks, IN_VERDICTS)
    {
        page_cell(page, &compare_rank_columns, column, ranks, rank);
    }
    fputs("</tr>\n", page->stream);
}

static void put_report(const struct page *page, const struct compare_ranks *ranks)
{
    html_print(page->stream, "<h3>healcl-mpi %s</h3><p class=\"note\">",
               compare_ranks_command(ranks));
    page_path(page, ranks->transcript);
    fputs(", in ", page->stream);
    page_path(page, ranks->report);
    fputs("</p>\n<div class=\"scroll\"><table class=\"verdicts ranks\"><thead><tr>"
          "<th scope=\"col\">Rank</th>",
          page->stream);
    FOR_EACH_OF_RANKS(column, ranks, IN_VERDICTS)
    {
        page_column_head(page, column);
    }
    fputs("</tr></thead><tbody>\n", page->stream);
    for (size_t i = 0; i < ranks->count; i++)
        put_row(page, ranks, &ranks->rows[i]);
    fputs("</tbody></table></div>\n", page->stream);
}

void page_ranks(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    if (comparison->ranks_count == 0)
        return;
    fputs("<section id=\"ranks\"><h2>Ranks</h2><p class=\"note\">Ranks work at the same time. "
          "Times of all are the longest ones, or of latencies those of all requests; sizes are "
          "sums.</p>\n",
          page->stream);
    for (size_t i = 0; i < comparison->ranks_count; i++)
        put_report(page, &comparison->ranks[i]);
    fputs("</section>\n", page->stream);
}
