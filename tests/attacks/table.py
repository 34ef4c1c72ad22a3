"""Every attack that was tried, what must come of it, and its test. docs/security.md is written from it."""

from __future__ import annotations

from tests.tried import Chapter, Tried, ids


def _in_every_workflow(check: str) -> tuple[str, ...]:
    """The cases of one check of the workflows' files."""
    called = ("build", "keep", "measure", "plan", "report")
    by_events = ("answer-command", "bisect", "check", "confirm", "docs", "measure-pull-request", "nightly", "profile")
    others = (*by_events, "refresh-baseline", "review")
    return tuple(f"{check}-{name}" for name in sorted((*called, *others)))


_FUZZED = ("archive", "cards", "command", "description", "event", "failure", "manifest", "policy", "record", "report")
"""The readers that make test can try in its own process."""

_NOT_OF_THE_DEFAULT_BRANCH = (
    "of a pull request",
    "of a comment, which builds a pull request's head",
    "of a dispatch, which may name a pull request",
    "of a report",
    "of another branch",
    "of a fork's main",
    "of a tag that is called main, of a commit that is not on the branch",
)
"""Runs whose artifacts nobody takes for the default branch's own."""

WITHOUT_FORGING = Chapter(
    "What a person can do without forging anything",
    (
        Tried(
            "`/kernelgate bench` of a harmless case after a whole measurement failed, and the same by a push",
            "the failure and its label stand; the comment says what was not timed",
            "attacks/test_incomplete.py::test_a_harmless_case_takes_no_failure_back",
            ("by a command", "by a push"),
        ),
        Tried(
            "`/kernelgate bench` of one case alone",
            "open: no success, no label",
            "attacks/test_incomplete.py::test_a_harmless_case_alone_is_no_verdict",
        ),
        Tried(
            "a command that leaves a GPU of the policy out",
            "open",
            "attacks/test_incomplete.py::test_a_gpu_that_a_command_left_out_keeps_the_verdict_open",
        ),
        Tried(
            "a run that a newer one cancelled, by closing and opening the pull request",
            "posts nothing",
            "ci/github/test_publish.py::test_a_run_that_a_newer_one_cancelled_says_nothing",
        ),
        Tried(
            "a second run of a commit that failed, which is cancelled, fails or runs out of time",
            "the failure stands",
            "ci/github/test_publish.py::test_a_run_without_a_verdict_takes_no_failure_back",
            ("cancelled", "failure", "timed_out"),
        ),
        Tried(
            "a second measurement that is too noisy to tell",
            "the failure stands",
            "ci/github/test_publish.py::test_an_uncertain_verdict_takes_no_failure_back",
        ),
        Tried(
            "another base after a failure, which asks for no measurement",
            "the failure stands",
            "ci/github/test_publish.py::test_another_base_takes_no_failure_back",
        ),
        Tried(
            "a base from which the change touches workflows, and back, with the measurement cancelled",
            "the failure stands",
            "attacks/test_incomplete.py::test_a_check_that_waits_for_somebody_takes_no_failure_back",
        ),
        Tried(
            "a second pull request of the same commit to an old and slow base",
            "the check fails for both",
            "ci/github/test_publish.py::test_a_commit_of_two_pull_requests_passes_for_neither",
        ),
        Tried(
            "a description that is edited where nothing was measured",
            "no check is posted",
            "ci/github/test_publish.py::test_what_was_to_be_measured_and_never_was_gets_no_check",
        ),
        Tried(
            "a head whose base cannot be measured, after a failure",
            "the failure stands",
            "ci/github/test_publish.py::test_a_head_without_a_base_hides_no_failure_of_the_same_commit",
            ("base_does_not_compile-True",),
        ),
        Tried(
            "an honest measurement of either kind, as a control",
            "success, success and failure, with their labels",
            "attacks/test_incomplete.py::test_an_honest_measurement_is_judged",
        ),
    ),
)

TEXT = Chapter(
    "Text: in records, branches, commits and descriptions",
    (
        Tried(
            "text of one kind in every string and key of a record, a verdict and a failure",
            "text, never Markdown, HTML or anything hidden",
            "attacks/test_text.py::test_it_is_inert_everywhere",
            ids(
                "mention; issue; commit; address; link; image; HTML; details; marker; table; newline; "
                "line separator; fence; mathematics; mermaid; footnote; alert; task; emoji; bidirectional; "
                "zero width; tag characters; homoglyph; zalgo; setext; entity; terminal; NUL; style; template; "
                "advisory"
            ),
        ),
        Tried(
            "random mixtures of such texts in the comment",
            "the structure of the comment is the same as with harmless text",
            "ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment",
        ),
        Tried(
            "the same on the page and in its pictures",
            "no element, attribute or style of its own",
            "ci/report/test_page.py::test_no_text_of_a_record_becomes_an_element_of_the_page",
        ),
        Tried(
            "a finding of compute-sanitizer in a workflow's file, in another folder, or outside of the repository",
            "no annotation; the comment names it as text",
            "ci/github/test_annotations.py::test_a_finding_elsewhere_than_in_a_kernels_source_has_no_place",
        ),
        Tried(
            "characters that are invisible, reorder or stack",
            "shown by their code points",
            "ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment",
        ),
        Tried(
            "the marker of the bot in a text",
            "the marker stands once, at the end",
            "ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment",
        ),
        Tried(
            "a text of 70,000 characters",
            "cut before it fills the comment",
            "ci/document/test_render.py::test_long_strings_are_cut_before_they_fill_the_comment",
        ),
        Tried(
            "many long texts",
            "the verdict stays",
            "ci/document/test_render.py::test_many_long_strings_leave_the_verdict_standing",
        ),
        Tried(
            "a link to what is no address",
            "its text",
            "ci/document/test_escape.py::test_a_link_to_what_is_no_address_is_its_text",
        ),
        Tried(
            "the page loads or runs something",
            "forbidden by the page itself",
            "ci/report/test_page.py::test_the_page_needs_nothing_but_itself",
        ),
        Tried(
            "control sequences for a terminal",
            "printed as their code points",
            "ci/document/test_terminal.py::test_no_text_of_a_record_steers_the_terminal",
        ),
        Tried(
            "hostile branch, title, description, claim, host and device over the wire",
            "inert in comment and summary",
            "ci/github/test_publish.py::test_text_of_a_stranger_is_inert_wherever_it_comes_from",
        ),
        Tried("hostile output of the compiler", "inert", "ci/github/test_publish.py::test_compiler_output_is_inert"),
        Tried(
            "a hostile name of a job and of a step",
            "inert",
            "ci/github/test_publish.py::test_a_job_name_of_a_fork_is_inert",
        ),
        Tried(
            "an address of the page that is none",
            "links nowhere",
            "ci/github/test_publish.py::test_an_address_that_is_none_links_nowhere",
        ),
        Tried(
            "orders to the runner in what is logged",
            "broken up",
            "ci/github/test_actions.py::test_the_log_gives_no_commands",
        ),
        Tried(
            "a line break in an output of a step",
            "refused",
            "ci/github/test_actions.py::test_an_output_cannot_bring_another",
        ),
        Tried(
            "a description of 262 kB in one line, against the regular expressions",
            "read in time",
            "ci/github/test_description.py::test_a_line_without_an_end_is_read_all_the_same",
        ),
        Tried(
            "the bot's marks in a description, around a claim and a hypothesis of one's own",
            "neither is read there",
            "ci/github/test_description.py::test_what_the_bot_wrote_is_no_claim_and_no_hypothesis",
        ),
        Tried(
            "10,000 marks of the bot without an end",
            "read in time",
            "ci/github/test_results_block.py::test_marks_without_an_end_are_read_in_time",
        ),
        Tried(
            "hostile text in a compiler's warning, in comment and annotation",
            "inert; only lines of changed files bear an annotation",
            "ci/report/test_compiler_warnings.py::test_a_strangers_text_stays_text",
        ),
        Tried(
            "a line table that names another file of the machine, for its lines to be quoted on the page",
            "only the commit's own sources are quoted",
            "bench/explain/test_quoted_lines.py::test_a_line_table_that_names_another_file_gets_nothing_of_it",
            tuple(
                f"{place}-{kind}"
                for place in ("absolute", "relative", "beside an extension's sources", "beside a package's sources")
                for kind in ("extension", "package")
            ),
        ),
        Tried(
            "a description of many sections and claims",
            "read to its end, claims counted",
            "ci/github/test_description.py::test_a_huge_description_is_read_to_its_end",
        ),
    ),
)

ARCHIVES = Chapter(
    "Archives and JSON",
    (
        Tried(
            "an archive of another kind",
            "refused whole",
            "attacks/test_archives.py::test_an_archive_of_another_kind_is_refused",
            ids(
                "traversal; absolute; backslash; another case; 5,000 members; an archive inside; bzip2; LZMA; "
                "a lie about the size; a bomb; cut short; no archive"
            ),
        ),
        Tried(
            "JSON of another kind",
            "refused",
            "attacks/test_archives.py::test_json_of_another_kind_is_refused",
            ids(
                "NaN; 1e999; a key twice; a key twice, once escaped; depth 100,000; 5,000 digits; BOM; UTF-16; "
                "surrogate; empty; text"
            ),
        ),
        Tried(
            "a member of another name",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_any_other_name_is_refused",
            ids(
                "../run.json; ../../.bashrc; /etc/passwd; /srv/run.json; C:\\\\run.json; ..\\\\run.json; "
                "x/run.json; ./run.json; run.json/; RUN.JSON; run.json ; run.jsonx; .git/hooks/pre-commit; "
                "run\\u200b.json; ::add-mask::run.json; x\\n::error::run.json"
            ),
        ),
        Tried(
            "a name with something behind a NUL",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_name_with_something_behind_a_nul_is_refused",
        ),
        Tried(
            "a symbolic link, a device, a pipe or a folder",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_links_and_special_files_are_refused",
        ),
        Tried("one name twice", "refused", "ci/github/test_untrusted_artifact.py::test_one_name_twice_is_refused"),
        Tried(
            "an encrypted member", "refused", "ci/github/test_untrusted_artifact.py::test_an_encrypted_file_is_refused"
        ),
        Tried("damaged content", "refused", "ci/github/test_untrusted_artifact.py::test_damaged_content_is_refused"),
        Tried(
            "an archive over 16 MiB",
            "refused unread",
            "ci/github/test_untrusted_artifact.py::test_a_large_archive_is_refused_unread",
        ),
        Tried(
            "other bytes than were uploaded",
            "not taken",
            "ci/github/test_fetch.py::test_other_bytes_than_were_uploaded_are_not_taken",
        ),
        Tried(
            "numbers that are none, zero or negative",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_numbers_that_are_none_are_refused",
        ),
        Tried(
            "keys that the schema does not know, with orders to the runner",
            "refused in one line",
            "ci/github/test_untrusted_artifact.py::test_unknown_keys_are_refused_in_a_line_of_their_own",
        ),
        Tried(
            "lists without an end",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_lists_without_an_end_are_refused",
        ),
        Tried(
            "a failure note that does not fit",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_failure_note_that_does_not_fit_is_refused",
        ),
        Tried(
            "the token follows to the host that stores artifacts",
            "it does not",
            "ci/github/test_fetch.py::test_the_token_goes_to_github_only",
        ),
    ),
)

IDENTITY = Chapter(
    "Identity: of which run, commit and pull request",
    (
        Tried(
            "a record of another pull request, head, base, repository, run or of a later attempt",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_record_of_something_else_is_refused",
        ),
        Tried(
            "builds of other commits inside a record",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_builds_of_other_commits_are_refused",
        ),
        Tried(
            "a pull request that GitHub does not know of this run",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_pull_request_that_github_does_not_know_is_refused",
        ),
        Tried(
            "a fork's branch of the same name",
            "another pull request",
            "ci/github/test_fetch.py::test_another_branch_of_the_same_name_is_not_meant",
        ),
        Tried(
            "two pull requests with one head",
            "neither is judged, the check fails",
            "ci/github/test_publish.py::test_a_commit_of_two_pull_requests_passes_for_neither",
        ),
        Tried(
            "a success against an old base, retargeted while the new run waits",
            "the check waits, the label goes",
            "attacks/test_retarget.py::test_a_retargeted_pull_request_does_not_merge_on_its_old_success",
            ("waiting", "action_required"),
        ),
        Tried(
            "the waiting ends with a verdict",
            "the verdict of that run",
            "attacks/test_retarget.py::test_the_verdict_of_the_new_run_ends_the_waiting",
            ("slower-failure", "faster-success"),
        ),
        Tried(
            "retarget, and let the new run end without a verdict",
            "the failure is repeated",
            "attacks/test_retarget.py::test_the_waiting_lifts_no_failure",
            ("nothing measured", "uncertain", "cancelled"),
        ),
        Tried(
            "close and open, so that a run is replaced",
            "it waits no longer",
            "attacks/test_retarget.py::test_a_run_that_another_replaced_does_not_wait_for_ever",
        ),
        Tried(
            "a replaced run between a failure and a run without a verdict",
            "the failure stands",
            "attacks/test_retarget.py::test_a_replaced_run_hides_no_failure_from_the_next",
        ),
        Tried(
            "edit the description before anything was measured",
            "the check asks for an action, and passes nothing",
            "attacks/test_retarget.py::test_what_was_never_measured_neither_waits_nor_passes",
        ),
        Tried(
            "edit the description while it is measured",
            "the check waits for the measurement",
            "attacks/test_retarget.py::test_an_edit_while_it_is_measured_waits_for_the_measurement",
        ),
        Tried(
            "close the pull request or delete its branch while it is measured",
            "the check neither waits nor passes",
            "attacks/test_retarget.py::test_what_is_gone_waits_for_nothing",
            ("closed", "deleted branch"),
        ),
        Tried(
            "edit the description while a command measures",
            "the command's result is the newer one",
            "attacks/test_retarget.py::test_a_commands_result_is_newer_than_an_edited_description",
        ),
        Tried(
            "retarget, and cancel or edit",
            "the failure stands",
            "ci/github/test_publish.py::test_a_run_without_a_verdict_takes_no_failure_back",
            ("cancelled", "failure", "timed_out"),
        ),
        Tried(
            "another base, which asks for no measurement",
            "the failure stands",
            "ci/github/test_publish.py::test_another_base_takes_no_failure_back",
        ),
        Tried(
            "the bot's marker in a stranger's comment",
            "not taken for the bot's",
            "ci/github/test_client.py::test_a_marker_copied_by_somebody_else_is_not_ours",
        ),
        Tried(
            "the bot's marker inside its own text",
            "not taken for the state",
            "ci/github/test_client.py::test_a_marker_inside_our_own_text_is_not_the_state",
        ),
        Tried(
            "a check run of another App with our name and mark, of a run far in the future",
            "not taken for ours",
            "attacks/test_check_of_an_app.py::test_a_check_run_of_somebody_else_is_not_ours",
        ),
        Tried(
            "a job of the pull request with the name of the check",
            "the ruleset can require the check of an App of one's own, whose token posts",
            "attacks/test_check_of_an_app.py::test_the_apps_token_posts",
        ),
        Tried(
            "a change to the workflows, renamed or not",
            "seen, and not judged",
            "ci/github/test_fetch.py::test_a_change_to_the_workflows_is_seen",
        ),
        Tried(
            "a change too large for GitHub to list",
            "treated as one to the workflows",
            "ci/github/test_fetch.py::test_a_change_too_large_to_list_could_hide_anything",
        ),
    ),
)

COMPLETENESS = Chapter(
    "A record that says less, or something else, than was planned",
    (
        Tried(
            "two GPUs, of which one left no record",
            "open",
            "attacks/test_incomplete.py::test_of_two_gpus_one_left_no_record",
        ),
        Tried(
            "two GPUs, of which one is slower and the other left no record",
            "the regression blocks",
            "attacks/test_incomplete.py::test_of_two_gpus_one_is_slower_and_one_left_no_record",
        ),
        Tried(
            "a label that the policy does not have, alone or beside an honest record",
            "refused; what the honest record shows still blocks",
            "attacks/test_incomplete.py::test_an_invented_label_proves_nothing",
            ("beside no change", "beside a regression", "alone"),
        ),
        Tried(
            "a record of another device under the label l4",
            "refused where it names another capability, open where it names none",
            "attacks/test_incomplete.py::test_a_record_of_another_device_passes_for_no_gpu",
            ("an H200", "a CPU", "no capability", "no environment", "processes of an environment that is not there"),
        ),
        Tried(
            "a regression in a record that names no capability",
            "it blocks",
            "attacks/test_incomplete.py::test_a_regression_on_a_device_that_is_not_told_blocks",
        ),
        Tried(
            "a case missing, too few processes, no fuzzing, a run that ended early",
            "open, with a sentence each",
            "ci/github/test_assemble.py::test_what_is_missing_keeps_the_check_open",
        ),
        Tried(
            "a regression, and a case missing",
            "it blocks",
            "ci/github/test_assemble.py::test_a_regression_blocks_although_a_case_is_missing",
        ),
        Tried(
            "a record that brings its own plan",
            "held against the default branch's",
            "ci/github/test_assemble.py::test_the_plans_own_hash_is_believed_and_not_the_records",
        ),
        Tried(
            "a card that the default branch does not have, which calls itself the default branch's",
            "decides nothing",
            "ci/github/test_assemble.py::test_a_card_that_the_default_branch_does_not_have_decides_nothing_whatever_it_says",
        ),
        Tried(
            "one library on both sides of one card, for the sake of another",
            "open",
            "ci/github/test_assemble.py::test_one_library_of_one_card_passes_for_no_other",
        ),
        Tried(
            "a later artifact of the same label and attempt, faster or slower than the first",
            "the first is judged, and nothing passes",
            "attacks/test_incomplete.py::test_a_later_artifact_of_the_same_attempt_replaces_nothing",
        ),
        Tried(
            "the artifact of an attempt that is not there yet",
            "refused; the regression of this attempt blocks",
            "attacks/test_incomplete.py::test_an_attempt_that_is_not_there_yet_replaces_nothing",
        ),
        Tried(
            "the artifact of a later attempt, as a control",
            "it counts",
            "attacks/test_incomplete.py::test_the_artifact_of_a_later_attempt_counts",
        ),
        Tried(
            "a failure note beside a regression of the same attempt",
            "the regression blocks",
            "attacks/test_incomplete.py::test_a_note_beside_a_record_of_the_same_attempt_hides_nothing",
        ),
        Tried(
            "artifacts of many invented labels over a regression",
            "the regression blocks; 16 are downloaded",
            "attacks/test_incomplete.py::test_junk_buries_no_regression",
            ("17", "505"),
        ),
        Tried(
            "40 artifacts of the same label over a regression",
            "the regression blocks",
            "attacks/test_incomplete.py::test_junk_of_the_same_label_buries_no_regression",
        ),
        Tried(
            "a failure note that blames the runner for a step that tries the author's code",
            "nobody is blamed, and nothing passes: action required",
            "attacks/test_incomplete.py::test_a_note_does_not_outweigh_what_github_says",
            ids("measure (l4) / measure-runner; measure (l4) / measure-ours; build / build-runner; build / build-ours"),
        ),
        Tried(
            "a clean record over a fuzz step that GitHub says failed",
            "action required",
            "attacks/test_incomplete.py::test_a_record_that_says_nothing_of_a_failed_fuzz_step_does_not_pass",
        ),
        Tried(
            "a kernel that takes the runner down on one GPU",
            "open",
            "ci/github/test_publish.py::test_a_gpu_that_left_nothing_keeps_the_verdict_open",
        ),
        Tried(
            "a kernel that takes the runner down before the case where it is slower",
            "open",
            "ci/github/test_publish.py::test_a_record_that_was_cut_short_keeps_the_verdict_open",
            ("faster", "equivalent"),
        ),
        Tried(
            "a record without a base's commit, and another base meanwhile",
            "refused",
            "attacks/test_incomplete.py::test_a_record_without_a_base_survives_no_retarget",
        ),
    ),
)

EVIDENCE = Chapter(
    "Forged measurements",
    (
        Tried(
            "a record that is 30% faster, of which a part is left out, contradicts itself or is not plausible",
            "refused or open, and the comment says why",
            "attacks/test_incomplete.py::test_what_is_not_shown_does_not_pass",
            ids(
                "fuzz omitted; fuzz skipped; fuzz empty; fuzz of nobody knows how many; fuzz cut short; "
                "fuzz without its results; fuzz failed without a failure; fuzz skipped with results; "
                "sanitizer omitted; sanitizer skipped; sanitizer cut short; sanitizer of nobody knows how much; "
                "sanitizer of another card; sanitizer passed with a finding; "
                "sanitizer that the base has, too, cut short; fuzz of another card; "
                "fuzz passed with a failed result; fuzz passed with failures counted; "
                "fuzz passed at 99 times the limit; fuzz of fewer results than ran; outputs omitted; "
                "outputs not compared; outputs of the base alone; outputs omitted in one process; no base sha; "
                "another base sha; no base; 1000 times as fast; 1000 times as fast without work; "
                "1000 times as fast with tiny work; 1000 times as fast on an unknown GPU; "
                "1000 times as fast on an unknown GPU without work; 1000 times as fast as bytes; "
                "one process five times; the base's times scaled; no reference; one process; no witness; "
                "ended early; judged by its own card; a case too many; of another schema"
            ),
        ),
        Tried(
            "a head 1000 times as fast where neither work nor GPU is known",
            "open: more than 100 times as fast as base and reference is not plausible",
            "attacks/test_incomplete.py::test_what_no_roof_shows_the_reference_does",
        ),
        Tried(
            "a reference that is absent, and a note that excuses it",
            "excused only where the device's roof is known",
            "attacks/test_incomplete.py::test_a_reference_that_could_not_be_timed_is_excused_where_the_roof_is_known",
        ),
        Tried(
            "a process pasted several times",
            "refused",
            "ci/judge/test_duplicate_samples.py::test_a_process_pasted_twice_is_refused_by_name",
        ),
        Tried(
            "a stretch of times pasted elsewhere",
            "refused",
            "ci/judge/test_duplicate_samples.py::test_a_stretch_is_found_wherever_it_stands",
        ),
        Tried(
            "samples of zero, below zero, NaN, Infinity, texts, null, numbers of 5,000 digits",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_numbers_that_are_none_are_refused",
        ),
    ),
)

RESOURCES = Chapter(
    "A record that stops the report or makes it slow",
    (
        Tried(
            "numbers that no measurement gives",
            "refused; a check is posted",
            "attacks/test_crafted.py::test_numbers_that_no_measurement_gives_are_refused",
            ids(
                "capability in superscripts; capability of Arabic digits; capability of a line; "
                "a metric of -1e300; a metric of 1e300; a sample of 1e300; a denormal sample; a graph of 1e-300; "
                "a count of 2 to the 64; a seed of 20 digits; a negative count; an axis of 1e300; work of 1e300; "
                "a share of 2"
            ),
        ),
        Tried(
            "a record that once stopped the report, after a success",
            "neutral takes the success's place",
            "attacks/test_crafted.py::test_a_crafted_record_leaves_no_old_success",
        ),
        Tried(
            "a record that makes kernelgate stumble, wherever that is",
            "refused in one sentence; a check is posted",
            "attacks/test_crafted.py::test_a_record_that_makes_us_stumble_is_refused_and_a_check_is_posted",
            ("judge", "claims.assess", "render.comment", "render.comment of all"),
        ),
        Tried(
            "a record that makes kernelgate stumble, beside a regression on another GPU",
            "the regression blocks",
            "attacks/test_crafted.py::test_a_regression_blocks_beside_a_record_that_makes_us_stumble",
        ),
        Tried(
            "250 cases, or 8 processes of a case, of a plan that asks for 2",
            "not judged",
            "attacks/test_crafted.py::test_more_than_the_plan_warrants_is_not_judged",
            ("bench-250 cases", "profile-250 cases", "bench-8 processes", "profile-8 processes"),
        ),
        Tried(
            "any mutation of honest records: parts deleted, doubled, replaced by extreme numbers and words",
            "judged or refused",
            "attacks/test_crafted.py::test_no_record_makes_us_stumble",
        ),
        Tried(
            "lists without an end: profiles, builds, notes",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_lists_without_an_end_are_refused",
        ),
        Tried(
            "processes and fuzz results without an end",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_processes_and_fuzz_results_without_an_end_are_refused",
        ),
        Tried(
            "400,000 cases, 200,000 keys",
            "refused at once",
            "ci/github/test_untrusted_artifact.py::test_many_keys_and_many_cases_are_refused_at_once",
        ),
        Tried(
            "many cards and many axes",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_many_cards_and_many_axes_are_refused",
        ),
    ),
)

COMMANDS = Chapter(
    "Commands, approvals and events",
    (
        Tried(
            "a stranger, somebody who may only read, or only triage",
            "refused politely, nothing runs",
            "ci/github/test_command.py::test_a_stranger_is_refused_politely",
        ),
        Tried(
            "somebody who is no collaborator",
            "refused",
            "ci/github/test_command.py::test_who_is_no_collaborator_at_all_is_refused",
        ),
        Tried(
            "a stranger with a bad command",
            "learns no more",
            "ci/github/test_command.py::test_a_stranger_learns_no_more_from_a_bad_command",
        ),
        Tried(
            "many commands of a stranger",
            "one comment",
            "ci/github/test_command.py::test_many_refusals_are_one_comment",
        ),
        Tried(
            "a bot, an edited comment, an issue, no command",
            "ignored",
            "ci/github/test_command.py::test_what_is_no_command_is_ignored",
        ),
        Tried("texts that are nearly a command", "ignored", "ci/github/test_command.py::test_other_comments_are_not"),
        Tried(
            "unknown verbs",
            "answered with the known ones",
            "ci/github/test_command.py::test_unknown_verbs_get_the_known_ones",
        ),
        Tried(
            "shell text in place of a case",
            "refused, reaches no shell",
            "ci/github/test_command.py::test_shell_text_is_no_case",
        ),
        Tried("too many cases", "refused", "ci/github/test_command.py::test_too_many_cases_are_refused"),
        Tried(
            "a push after the command",
            "not measured",
            "ci/github/test_command.py::test_what_was_pushed_since_is_not_measured",
        ),
        Tried(
            "a commit that a fork took back and put back",
            "not measured",
            "ci/github/test_command.py::test_a_commit_that_a_fork_took_back_and_put_back_is_not_measured",
        ),
        Tried(
            "a fork that was deleted",
            "not measured",
            "ci/github/test_command.py::test_a_fork_that_is_gone_is_not_measured",
        ),
        Tried(
            "a command on a closed pull request",
            "refused",
            "ci/github/test_command.py::test_a_closed_pull_request_is_not_measured",
        ),
        Tried(
            "a command by an App that acts for a maintainer",
            "not run: the comment is the App's",
            "attacks/test_commands.py::test_an_app_that_acts_for_a_maintainer_commands_nothing",
            ("as itself", "in a maintainer's name"),
        ),
        Tried(
            "a command on a locked conversation",
            "run, since only people with write access can comment there; its answer stands in the summary",
            "attacks/test_commands.py::test_a_locked_conversation_is_commanded_by_those_who_may_write",
        ),
        Tried(
            "approvals that are missing or of another environment",
            "not admitted",
            "ci/github/test_admit.py::test_a_fork_that_nobody_approved_is_not",
        ),
        Tried(
            "a commit pushed after the approval",
            "not admitted",
            "ci/github/test_admit.py::test_a_commit_pushed_after_the_approval_is_not",
        ),
        Tried(
            "another commit than the run is about",
            "not admitted",
            "ci/github/test_admit.py::test_another_commit_than_the_runs_is_not",
        ),
        Tried(
            "events that a fork's workflow may choose",
            "asked the same as a pull request",
            "ci/github/test_admit.py::test_events_that_a_forks_workflow_may_choose_are_asked_the_same",
            ("pull_request_review", "pull_request_review_comment"),
        ),
        Tried("events that nobody knows", "not admitted", "ci/github/test_admit.py::test_unknown_events_are_not"),
        Tried(
            "shell text in any input of a dispatch",
            "refused",
            "ci/github/test_plan.py::test_shell_text_in_any_input_is_refused",
        ),
        Tried(
            "a fork that names its concurrency group like a report's, to cancel it",
            "its commit changes a workflow, so it is not judged and has no success that could stay",
            "ci/github/test_publish.py::test_a_change_to_the_workflows_is_not_judged",
        ),
        Tried(
            "a stranger asks for a search, often, on a pull request or in an issue",
            "refused, in one comment",
            "ci/github/test_bisect_request.py::test_a_stranger_starts_no_search_and_many_refusals_are_one_comment",
            ("pull request", "issue"),
        ),
        Tried(
            "a search of a fork's commit that nobody offered, of commits of elsewhere, or with shell text for them",
            "refused with the reason, reaches no shell",
            "ci/github/test_bisect_request.py::test_other_commits_and_shell_text_are_refused",
        ),
        Tried(
            "shell text in an input of a search's dispatch",
            "refused before anything is searched",
            "workflows/test_end_to_end.py::test_shell_text_in_an_input_of_a_search_is_never_run",
            ("good", "bad", "case", "gpu", "number"),
        ),
        Tried(
            "an option of a search that a comment may not give",
            "named, nothing runs",
            "ci/github/test_bisect_request.py::test_what_cannot_be_read_is_named",
        ),
        Tried(
            "a push after a search was asked for",
            "not searched",
            "ci/github/test_bisect_request.py::test_what_was_pushed_since_is_not_searched",
        ),
        Tried(
            "a pull request's own workflow calls the search",
            "skipped: neither a comment nor a dispatch",
            "workflows/test_workflows.py::test_a_search_is_started_by_a_comment_or_a_dispatch_alone",
            ("pull_request", "pull_request_review", "push", "schedule", "something_new"),
        ),
        Tried(
            "a pull request's card says that its wrong results are right while a commit is searched",
            "the default branch's cards are there",
            "workflows/test_workflows.py::test_the_cards_of_a_search_are_the_default_branchs",
        ),
        Tried(
            "a search's machine hands out an answer that is none",
            "refused in a sentence; nothing of it is believed",
            "ci/github/test_bisect_answer.py::test_an_answer_that_is_not_one_is_refused_in_a_sentence",
            ids(
                "a sha that is none; a sha with an end of line; a commit of elsewhere; the good end; "
                "several of elsewhere; found without a commit; another case; a case of Markdown; a text too long; "
                "a file too long; deep brackets; submodules without an end; no number; more certain than certain; "
                "a key twice; a key of its own; another kind; no JSON"
            ),
        ),
        Tried(
            "Markdown, HTML, mentions and the bot's own marker in an answer of any kind",
            "text in a code span",
            "ci/github/test_bisect_answer.py::test_hostile_words_of_an_answer_stay_words",
        ),
        Tried(
            "a command to repeat that the answer wrote",
            "not shown: the bot writes its own",
            "ci/github/test_bisect_answer.py::test_a_fuzz_case_and_a_compile_have_theirs",
        ),
        Tried(
            "a link in place of the answer's file",
            "not followed",
            "ci/github/test_bisect_answer.py::test_a_link_in_place_of_the_answer_is_not_followed",
        ),
        Tried(
            "the last line of the bot's comment in somebody else's",
            "left alone",
            "ci/github/test_bisect_answer.py::test_one_comment_is_begun_and_becomes_the_answer",
        ),
    ),
)

REVIEWS = Chapter(
    "Sessions that experts review",
    (
        Tried(
            "a stranger answers a session, often, also on a pull request that is closed",
            "refused, in one comment; the job that may push is not started",
            "ci/lab/test_review.py::test_only_people_with_write_access_are_answered_with_a_pull_request",
            ("open", "closed"),
        ),
        Tried(
            "the same through the workflow",
            "the job with the write token is skipped",
            "workflows/test_end_to_end.py::test_a_strangers_answer_to_a_session_gets_no_further_than_a_refusal",
        ),
        Tried(
            "text that breaks out of a pattern's front matter, HTML, mentions, links, orders to the runner",
            "text in a code span; the front matter has its own lines alone",
            "ci/lab/test_review.py::test_hostile_text_in_a_pattern_stays_text",
        ),
        Tried(
            "a path in place of a pattern's name, another line beside it",
            "refused",
            "ci/lab/test_review.py::test_what_is_none_is_refused",
        ),
        Tried(
            "shell text in a reviewer's pattern",
            "reaches no shell",
            "workflows/test_end_to_end.py::"
            "test_a_reviewers_pattern_becomes_a_pull_request_and_the_other_workflow_is_silent",
        ),
        Tried(
            "hostile text in every text of a session's log that is submitted",
            "text in code spans; the bot's last line stands once",
            "ci/lab/test_submit.py::test_hostile_text_of_a_log_stays_text",
        ),
        Tried(
            "a log of hundreds of long texts",
            "what fits is shown, the rest counted, and questions and forms stay",
            "ci/lab/test_submit.py::test_a_long_log_fits_and_what_is_left_out_is_counted",
        ),
        Tried(
            "somebody's issue with the last line of the bot's",
            "left alone",
            "ci/lab/test_submit.py::test_somebody_elses_issue_with_the_same_last_line_is_none_of_ours",
        ),
    ),
)

ACCEPT = Chapter(
    "Accepted regressions",
    (
        Tried(
            "somebody without write access accepts a regression",
            "refused in a sentence; it blocks",
            "attacks/test_accept.py::test_who_may_not_write_accepts_nothing",
            ("none", "read", "triage"),
        ),
        Tried(
            "the command by a bot, by an App in a person's name, quoted, or elsewhere than on the first line",
            "no command",
            "attacks/test_accept.py::test_what_is_no_command_of_a_person_accepts_nothing",
            ("a bot", "an App in her name", "a quote", "second line", "code", "behind a comment"),
        ),
        Tried(
            "another workflow repeats a stranger's command in the bot's name, and the label is set by hand",
            "it blocks; the label goes",
            "attacks/test_accept.py::test_what_the_bot_is_made_to_say_accepts_nothing",
        ),
        Tried(
            "a check run `kernelgate accepted` by another App",
            "it blocks",
            "attacks/test_accept.py::test_a_check_run_of_another_app_accepts_nothing",
        ),
        Tried(
            "a check run of ours whose text is damaged",
            "it blocks",
            "attacks/test_accept.py::test_a_check_run_that_cannot_be_read_accepts_nothing",
            ("none", "blank", "empty", "another schema"),
        ),
        Tried(
            "the comment is edited or deleted, before it is read or afterwards",
            "it blocks",
            "attacks/test_accept.py::test_a_comment_that_does_not_stand_accepts_nothing",
            ("before it is read-edited", "before it is read-deleted", "afterwards-edited", "afterwards-deleted"),
        ),
        Tried(
            "a push after the acceptance",
            "it blocks again, and the label goes",
            "attacks/test_accept.py::test_the_next_push_ends_it",
        ),
        Tried(
            "another base after the acceptance", "it blocks again", "attacks/test_accept.py::test_another_base_ends_it"
        ),
        Tried(
            "a push just before the comment, so that it means another commit than was looked at",
            "refused: that commit has no verdict",
            "attacks/test_accept.py::test_what_was_pushed_just_before_is_not_accepted",
        ),
        Tried(
            "the same, measured before the comment is read",
            "refused: the verdict came after the comment",
            "attacks/test_accept.py::test_a_verdict_that_came_after_the_comment_is_not_accepted",
        ),
        Tried(
            "a fork pushes after the comment, before it is read",
            "refused",
            "attacks/test_accept.py::test_what_was_pushed_since_is_not_accepted",
        ),
        Tried(
            "acceptance while the commit is measured again",
            "refused",
            "attacks/test_accept.py::test_what_is_being_measured_is_not_accepted",
        ),
        Tried(
            "acceptance where the pull request rewrites its own measurement",
            "nothing to accept; the check waits for somebody",
            "attacks/test_accept.py::test_a_pull_request_that_rewrites_its_judge_has_nothing_to_accept",
        ),
        Tried(
            "acceptance of a wrong result",
            "refused: only speed can be accepted",
            "attacks/test_accept.py::test_a_wrong_result_is_not_accepted",
        ),
        Tried(
            "a wrong result after an acceptance of the same commit",
            "it blocks",
            "attacks/test_accept.py::test_what_was_accepted_excuses_no_wrong_result",
        ),
        Tried(
            "acceptance of one case where another one is slower, too",
            "that one blocks",
            "attacks/test_accept.py::test_what_nobody_accepted_blocks_still",
        ),
        Tried(
            "acceptance where the description is incomplete",
            "it blocks",
            "attacks/test_accept.py::test_an_incomplete_description_blocks_still",
        ),
        Tried(
            "acceptance after a run that timed the accepted case alone, and an earlier failure of both",
            "the earlier failure stands",
            "attacks/test_accept.py::test_it_ends_no_earlier_failure_where_something_is_in_doubt",
        ),
        Tried(
            "acceptance when the records, or the run, are gone",
            "refused; comment and check stay",
            "attacks/test_accept.py::test_what_is_gone_is_not_judged_again",
        ),
        Tried(
            "Markdown, HTML, a mention and the bot's marker as the reason",
            "text",
            "attacks/test_accept.py::test_a_reason_is_inert",
        ),
        Tried(
            "any acceptances of any commits beside any evidence, against the gate",
            "no success that was none, no blocker lifted but a regression's, nothing of another commit or case",
            "ci/judge/test_accepted.py::test_an_acceptance_only_ever_takes_a_regression_from_what_blocks",
        ),
        Tried(
            "a baseline after a merge that was not accepted as it was merged",
            "not offered",
            "ci/github/test_acceptances.py::test_what_was_not_accepted_stops_it",
            ids("not merged; no label; another commit merged; comment deleted; in the baseline; merged later; denied"),
        ),
        Tried(
            "a second slowdown behind one that was accepted, on its way into the baseline",
            "not offered",
            "ci/github/test_acceptances.py::test_what_else_is_slower_stops_it",
        ),
    ),
)

BUILD = Chapter(
    "The build",
    (
        Tried(
            "a source whose name a command line or ninja would take for something else",
            "refused, naming it",
            "bench/build/test_recipe_sources.py::test_a_source_with_an_odd_name",
            ("newline", "substitution", "space", "at", "semicolon", "no UTF-8", "option"),
        ),
        Tried(
            "a file of a package with an odd name",
            "refused, naming it",
            "attacks/test_build.py::test_a_file_of_a_package_with_an_odd_name",
            ("newline", "no UTF-8", "escape"),
        ),
        Tried(
            "a source that is a link out of the repository",
            "refused, naming the link",
            "bench/build/test_recipe_sources.py::test_a_link_out_of_the_repository_is_not_followed",
            ids(
                "folder-csrc; file-csrc; folder-csrc/*; file-csrc/*; folder-csrc/link*; file-csrc/link*; "
                "folder-csrc/link/x.cpp; file-csrc/link/x.cpp; folder-.; file-."
            ),
        ),
        Tried(
            "a file of a package that is a link out of the repository",
            "refused, naming the link",
            "attacks/test_build.py::test_a_link_out_of_a_package",
            ids("file-top; file-src; first file-top; first file-src; package-top; package-src; module-top; module-src"),
        ),
        Tried(
            "a pattern of the card that leads out of the repository",
            "refused",
            "bench/build/test_recipe_sources.py::test_a_pattern_that_names_nothing",
        ),
        Tried(
            "an include of a file outside of the repository, such as /etc/passwd",
            "refused, naming file and line",
            "bench/build/test_recipe_sources.py::test_an_include_from_outside_of_the_repository",
            ("absolute", "in angle brackets", "above", "above system folders", "by a detour", "through a link"),
        ),
        Tried(
            "an include that a macro names, so that the compiler quotes a file of the machine",
            "the file is named and not quoted",
            "bench/build/test_compiler_output.py::test_what_stands_in_a_file_of_the_machine_is_not_quoted",
            ids(
                "/etc/passwd; csrc/../../../etc/passwd; /usr/include/../../etc/passwd; ../tools/../../a; /srv/a b:c(1)"
            ),
        ),
        Tried(
            "a command to the workflow in what a compiler prints",
            "printed so that it is none",
            "bench/system/test_progress.py::test_what_is_printed_is_no_command_to_a_workflow",
            ("first", "after spaces", "after a return", "in a later line", "of the old form"),
        ),
        Tried(
            "a command to the workflow in the error that ends the build",
            "printed so that it is none",
            "attacks/test_build.py::test_an_error_of_a_compiler_is_no_command_to_the_workflow",
        ),
        Tried(
            "a flag of the card with shell or ninja syntax",
            "one word of the compiler's command line",
            "bench/build/test_recipe.py::test_a_flag_of_a_card_is_one_word",
            ("$HOME", "$$(touch here)", "$gencode;x"),
        ),
        Tried(
            "build.ninja, sitecustomize.py, torch.py and the like beside the sources",
            "not copied to where sources are compiled",
            "attacks/test_build.py::test_what_steers_a_build_is_no_source",
        ),
        Tried(
            "a module in the checkout that is named like one of kernelgate's",
            "not imported",
            "bench/system/test_worker.py::test_the_current_folder_cannot_stand_in_for_the_package",
        ),
        Tried("a hook of the repository", "does not run", "bench/system/test_git.py::test_worktree_runs_no_hook"),
        Tried(
            "a filter that the commit's attributes name",
            "does not run",
            "attacks/test_build.py::test_a_filter_that_a_commit_names_does_not_run",
        ),
        Tried(
            "a submodule",
            "as far as the checkout has it; nothing is fetched",
            "bench/system/test_git.py::test_worktree_without_the_submodule_that_the_checkout_lacks",
        ),
        Tried(
            "an error whose words are those of a machine that breaks down",
            "the author's all the same",
            "bench/build/test_compiler_output.py::test_the_sources_are_at_fault_where_a_compiler_names_a_place_in_them",
            ("words of a breakdown",),
        ),
        Tried(
            "a library other than what the sources make, passed off as theirs",
            "a build of the same sources anywhere gives the same bytes",
            "bench/build/test_reproducible.py::test_two_builds_for_the_cpu",
        ),
        Tried(
            "the same, of code for a GPU",
            "the same bytes",
            "bench/build/test_reproducible.py::test_two_builds_for_a_gpu",
        ),
        Tried(
            "the same, of a package",
            "the same bytes",
            "bench/kernel/test_triton_build.py::test_two_builds_are_the_same_bytes",
        ),
    ),
)

BASELINE = Chapter(
    "The baseline's offer",
    (
        Tried(
            "a forged record on its way to become the baseline",
            "refused",
            "attacks/test_baseline_offer.py::test_a_forged_record_is_no_baseline",
            ids(
                "another commit; Markdown for a commit; no commit; another repository; another run; "
                "a pull request; another GPU; a base; a key twice; NaN; too large; no JSON"
            ),
        ),
        Tried(
            "any commit as the head",
            "the commit is that of the run",
            "attacks/test_baseline_offer.py::test_the_commit_is_the_runs",
        ),
        Tried(
            "orders to the runner in a key",
            "neither in the log nor in the error",
            "attacks/test_baseline_offer.py::test_a_key_is_no_order_to_the_runner",
        ),
        Tried(
            "Markdown in texts of the record",
            "inert in the pull request's body",
            "attacks/test_baseline_offer.py::test_no_text_of_a_record_is_markdown_in_the_pull_request",
        ),
        Tried(
            "a baseline that lies outside of the repository",
            "refused",
            "ci/github/test_baseline_pr.py::test_what_cannot_be_a_baseline_is_refused",
        ),
        Tried(
            "a measurement that was cut short, or that lacks a case",
            "refused",
            "ci/github/test_baseline_pr.py::test_a_measurement_that_was_cut_short_is_no_baseline",
        ),
        Tried(
            "a push to the default branch",
            "never: it is a pull request",
            "ci/github/test_baseline_pr.py::test_nothing_reaches_the_default_branch",
        ),
    ),
)

NATIVE = Chapter(
    "Code of the kernel that runs on the runner",
    (
        Tried(
            "from a kernel's process, where bubblewrap can be used",
            "refused",
            "attacks/test_native.py::test_an_isolated_process_cannot",
            ids(
                "write the environment of later steps; find where later steps take orders from; "
                "read the runner's credentials; rewrite the record; put a file into the workspace; "
                "mount the workspace anew; take away what hides the runner; read the variables of who leads it; "
                "read the memory of who leads it; write the memory of who leads it; "
                "go around through the leader's root; reach the network"
            ),
        ),
        Tried(
            "the runner's variables and tokens in the environment of a kernel",
            "not there",
            "bench/system/test_worker.py::test_a_child_is_told_neither_where_the_runner_takes_orders_from_nor_secrets",
            ids(
                "GITHUB_ENV; GITHUB_PATH; GITHUB_OUTPUT; GITHUB_STEP_SUMMARY; GITHUB_TOKEN; ACTIONS_RUNTIME_TOKEN; "
                "ACTIONS_RUNNER_HOOK_JOB_COMPLETED; RUNNER_TEMP; KERNELGATE_FAILURE; GH_TOKEN; "
                "AWS_SECRET_ACCESS_KEY; HF_TOKEN; SSH_AUTH_SOCK"
            ),
        ),
        Tried(
            "a runner where bubblewrap cannot be used",
            "measured with the runner's rights, and said",
            "bench/system/test_isolation.py::test_a_runner_that_cannot_isolate_measures_and_says_why",
            ("absent", "no user namespaces", "broken"),
        ),
        Tried(
            "a folder of libraries that was changed after it was built",
            "refused before anything is loaded",
            "bench/build/test_library.py::test_a_folder_that_was_changed_after_it_was_built_is_refused",
            ids("another library; another card; a file beside it; a second library; a file that is gone; bytecode"),
        ),
        Tried(
            "a workflow that gives no digest",
            "refused",
            "bench/build/test_library.py::test_a_digest_that_nobody_gave_is_refused",
        ),
        Tried(
            "a step that would measure a library without its digest",
            "there is none",
            "attacks/test_native.py::test_no_step_measures_a_library_that_is_not_the_one_that_was_built",
        ),
        Tried(
            "the base's library, changed while the head is built",
            "its digest is known before",
            "attacks/test_native.py::test_the_bases_digest_is_known_before_the_head_is_built",
        ),
        Tried(
            "a folder `kernelgate` in the checkout that stands in for the measuring code",
            "not imported",
            "bench/system/test_worker.py::test_the_current_folder_cannot_stand_in_for_the_package",
        ),
        Tried(
            "output that looks like messages",
            "not taken for any",
            "bench/system/test_worker.py::test_lines_go_both_ways_and_prints_do_not_mix_in",
        ),
        Tried(
            "a library that gains by cheating: memory, work left out or done later, clocks, the other side, messages",
            "never faster",
            "cheats/test_cheats.py::test_a_library_that_cheats",
            ids(
                "replay_by_pointer; replay_by_fingerprint; replay_by_content; replay_by_row; guessed_seed; "
                "copies_base_output; finds_reference; leaves_what_stands; skips_every_second; skips_every_50th; "
                "last_of_group; skips_rows; honest_while_warming_up; idle_while_warming_up; changes_inputs; "
                "detached_thread; computed_when_read; computes_ahead; lowered_precision; partial_reduction; "
                "recognised_shape; patched_clock; patched_timer; slowed_base_by_table; slowed_base_by_code; "
                "trashes_cache; left_over_work; forged_messages; rewritten_messages; patched_messages; "
                "rewritten_record; patched_checker; torch_operators"
            ),
        ),
        Tried(
            "a package that gains by cheating",
            "never faster",
            "cheats/test_cheats.py::test_a_package_that_cheats",
            ids(
                "replay_by_pointer; replay_by_content; skips_every_second; detached_thread; lowered_precision; "
                "patched_time; patched_torch; patched_modules; slowed_base"
            ),
        ),
        Tried(
            "the same code without a cheat",
            "not accused",
            "cheats/test_cheats.py::test_the_same_code_without_a_cheat_is_not_accused",
            ("extension", "package"),
        ),
    ),
)

WORKFLOWS = Chapter(
    "The workflows and what they install",
    (
        Tried(
            "a pull request changes the check of its own description, its policy or the action that sets it up",
            "held to what was merged",
            "workflows/test_checks.py::test_a_pull_request_that_changes_the_template_check_is_held_to_the_one_that_was_merged",
        ),
        Tried(
            "a fork edits a workflow to run on the GPU",
            "the job is never started",
            "workflows/test_end_to_end.py::test_a_forks_edited_workflow_never_reaches_the_gpu",
        ),
        Tried(
            "a fork edits a workflow to get a write token",
            "GitHub gives it a token that can only read",
            "workflows/test_end_to_end.py::test_a_forks_edited_workflow_gets_no_write_token",
        ),
        Tried(
            "a fork changes what measures and judges",
            "built, measured and judged by the default branch",
            "workflows/test_end_to_end.py::test_a_forks_changes_to_the_judge_do_not_judge",
        ),
        Tried(
            "a pull request relaxes the policy",
            "judged by the default branch's",
            "workflows/test_end_to_end.py::test_a_pull_request_is_judged_by_the_policy_that_it_changes",
        ),
        Tried(
            "a run of a fork, by each event that a fork's workflow may choose",
            "waits until a maintainer approves it",
            "workflows/test_workflows.py::test_a_forks_run_waits_for_approval",
            ids(
                "a fork; a review of a fork's; a comment of a review of a fork's; a fork that was deleted; "
                "an event that is not known"
            ),
        ),
        Tried(
            "the same events, asked again on the runner",
            "not admitted without an approval",
            "ci/github/test_admit.py::test_events_that_a_forks_workflow_may_choose_are_asked_the_same",
            ("pull_request_review", "pull_request_review_comment"),
        ),
        Tried(
            "events that start nothing of ours",
            "not admitted",
            "ci/github/test_admit.py::test_unknown_events_are_not",
            ("fork", "watch", "something_new"),
        ),
        Tried(
            "a fork that nobody approved, or that was approved for something else",
            "not admitted",
            "ci/github/test_admit.py::test_a_fork_that_nobody_approved_is_not",
        ),
        Tried(
            "an environment without reviewers",
            "not admitted",
            "workflows/test_end_to_end.py::test_an_environment_that_nobody_protected_lets_nobody_in",
        ),
        Tried(
            "a push after the approval",
            "not admitted",
            "ci/github/test_admit.py::test_a_commit_pushed_after_the_approval_is_not",
            ("octo-org/kernels", "stranger/kernels"),
        ),
        Tried(
            "another commit than that of the run",
            "not admitted",
            "ci/github/test_admit.py::test_another_commit_than_the_runs_is_not",
        ),
        Tried(
            "an event of another form than GitHub's",
            "refused in a sentence that names the place",
            "ci/github/test_actions.py::test_an_event_of_another_form_is_refused_and_the_place_named",
            ("list", "number", "no commit", "below zero", "no text", "no time zone", "no inputs"),
        ),
        Tried(
            "a workflow that runs a pull request's code and may write",
            "there is none",
            "workflows/test_workflows.py::test_what_runs_a_pull_requests_code_can_only_read",
            ("check", "nightly", "measure-pull-request", "plan", "build", "measure"),
        ),
        Tried(
            "a write token beside a pull request's files or a library",
            "there is none",
            "workflows/test_workflows.py::test_a_write_token_never_meets_a_pull_requests_files",
        ),
        Tried(
            "pull_request_target",
            "used nowhere",
            "workflows/test_workflows.py::test_pull_request_target_is_used_nowhere",
        ),
        Tried(
            "a caller of a workflow chooses what is checked out",
            "its own commit is",
            "workflows/test_workflows.py::test_measuring_code_is_the_called_workflows_own",
        ),
        Tried(
            "text of an event inside a script of a workflow",
            "there is no expression in any script",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("injected"),
        ),
        Tried(
            "the tag of an action is moved to other code",
            "every action is pinned to a full commit",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("unpinned"),
        ),
        Tried(
            "a library for the base, under the name and for the commit of the default branch's own",
            "not taken: only runs that a push to the default branch or a schedule started hand one over",
            "ci/github/test_trusted_runs.py::test_what_another_run_left_is_not_taken",
            _NOT_OF_THE_DEFAULT_BRANCH,
        ),
        Tried(
            "an index of the history, under the name of the default branch's own and left later",
            "not taken, by the same rule",
            "ci/github/test_trusted_runs.py::test_one_that_somebody_else_left_is_not_taken",
            _NOT_OF_THE_DEFAULT_BRANCH,
        ),
        Tried(
            "what is no index, or an archive of another kind, as the default branch's own index",
            "left; nothing is written",
            "ci/github/test_trusted_runs.py::test_what_is_no_index_is_left",
            ("no zip", "traversal", "no database", "two files", "another file"),
        ),
        Tried(
            "a poisoned library through the workflows, with an honest key and other code",
            "the base is compiled",
            "workflows/test_reuse.py::test_a_poisoned_library_of_a_pull_request_is_not_the_base",
        ),
        Tried(
            "an archive of libraries of another kind",
            "left; nothing is written outside",
            "ci/github/test_trusted_runs.py::test_an_archive_of_another_kind_is_left",
            ("no zip", "traversal", "absolute", "backslash", "link"),
        ),
        Tried(
            "a cache carries files from an untrusted run into a trusted one",
            "there is no cache",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("caches"),
        ),
        Tried(
            "a token left in a checkout, for what runs there",
            "no checkout keeps it",
            "workflows/test_workflows.py::test_it_has_no_fault",
            _in_every_workflow("left credentials"),
        ),
        Tried(
            "a fault of a workflow that zizmor knows",
            "found; 31 lines and one rule are passed over, each with its reason",
            "workflows/test_workflows.py::test_zizmor_is_really_asked",
            ("injected", "another's action by its tag", "another repository by its branch"),
        ),
        Tried(
            "an exception for zizmor without a reason, or one more than there are",
            "the tests fail",
            "workflows/test_workflows.py::test_every_exception_for_zizmor_gives_its_reason_and_they_are_few",
        ),
        Tried(
            "a version that was taken over is offered on the day of its release",
            "dependabot waits a week",
            "workflows/test_workflows.py::test_dependabot_waits_before_it_offers_a_version",
        ),
        Tried(
            "a package of the judge with the right version and other content",
            "not installed",
            "attacks/test_installed.py::test_a_package_with_other_content_is_not_installed",
        ),
        Tried(
            "an index, an option or a package without a hash among the judge's packages",
            "the tests fail",
            "attacks/test_installed.py::test_the_lock_has_the_versions_of_the_constraints",
        ),
        Tried(
            "a package that a package of the judge needs and nobody pinned",
            "the tests fail",
            "attacks/test_installed.py::test_the_lock_holds_what_judging_needs_and_nothing_else",
        ),
        Tried(
            "a source distribution, whose build fetches and runs what has no hash",
            "wheels alone are installed",
            "attacks/test_installed.py::test_the_judges_packages_are_installed_by_their_hashes_alone",
        ),
        Tried(
            "a job with a write token that installs something else",
            "there is none",
            "attacks/test_installed.py::test_a_job_that_may_write_installs_by_hashes_alone",
        ),
        Tried(
            "a filter that .gitattributes asks for",
            "not run",
            "attacks/test_checkout.py::test_a_filter_that_the_checkout_asks_for_is_not_run",
        ),
        Tried(
            "a module in the checkout with the name of another",
            "not imported",
            "attacks/test_checkout.py::test_a_module_in_the_checkout_stands_in_for_no_other",
            ("sitecustomize", "usercustomize", "torch", "json", "pydantic", "kernelgate"),
        ),
        Tried(
            "a package in the current folder of a worker process",
            "not imported",
            "bench/system/test_worker.py::test_the_current_folder_cannot_stand_in_for_the_package",
        ),
        Tried(
            "inputs of every reader of untrusted bytes that fuzzing found or that reach far",
            "read, or refused in a sentence, and soon",
            "fuzzing/test_readers.py::test_what_once_was_found_is_read_or_refused_in_a_sentence",
            _FUZZED,
        ),
        Tried(
            "what hypothesis makes of them",
            "read, or refused in a sentence, and soon",
            "fuzzing/test_readers.py::test_what_is_made_of_it_is_read_or_refused_in_a_sentence",
            _FUZZED,
        ),
        Tried(
            "a profiler report that makes NVIDIA's reader abort",
            "refused in a sentence",
            "ci/explain/test_analyze.py::test_a_report_that_ends_nvidias_reader_is_one_sentence",
        ),
    ),
)

ATTACKS = (
    WITHOUT_FORGING,
    TEXT,
    ARCHIVES,
    IDENTITY,
    COMPLETENESS,
    EVIDENCE,
    RESOURCES,
    COMMANDS,
    REVIEWS,
    ACCEPT,
    BUILD,
    BASELINE,
    NATIVE,
    WORKFLOWS,
)
