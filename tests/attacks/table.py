"""Every attack that was tried, what must come of it, and its test. docs/security.md is written from it."""

from __future__ import annotations

from tests.tried import chapter

WITHOUT_FORGING = chapter(
    "What a person can do without forging anything",
    """
`/kernelgate bench` of a harmless case after a whole measurement failed, and the same by a push
    → the failure and its label stand; the comment says what was not timed
    attacks/test_incomplete.py::test_a_harmless_case_takes_no_failure_back[*]
`/kernelgate bench` of one case alone → held: no success, no label
    attacks/test_incomplete.py::test_a_harmless_case_alone_is_no_verdict
a command that leaves a GPU of the policy out → held
    attacks/test_incomplete.py::test_a_gpu_that_a_command_left_out_keeps_the_verdict_open
a run that a newer one cancelled, by closing and opening the pull request → posts nothing
    ci/github/test_publish.py::test_a_run_that_a_newer_one_cancelled_says_nothing
a second run of a commit that failed, which is cancelled, fails or runs out of time → the failure stands
    ci/github/test_publish.py::test_a_run_without_a_verdict_takes_no_failure_back[*]
a second measurement that is too noisy to tell → the failure stands
    ci/github/test_publish.py::test_an_uncertain_verdict_takes_no_failure_back
another base after a failure, which asks for no measurement → the failure stands
    ci/github/test_publish.py::test_another_base_takes_no_failure_back
a base from which the change touches workflows, and back, with the measurement cancelled → the failure stands
    attacks/test_incomplete.py::test_a_check_that_waits_for_somebody_takes_no_failure_back
a second pull request of the same commit to an old and slow base → the check fails for both
    ci/github/test_publish.py::test_a_commit_of_two_pull_requests_passes_for_neither
a description that is edited where nothing was measured → no check is posted
    ci/github/test_publish.py::test_what_was_to_be_measured_and_never_was_gets_no_check
a head whose base cannot be measured, after a failure → the failure stands
    ci/github/test_publish.py::test_a_head_without_a_base_hides_no_failure_of_the_same_commit[base_does_not_compile-True]
an honest measurement of either kind, as a control → success, success and failure, with their labels
    attacks/test_incomplete.py::test_an_honest_measurement_is_judged
    """,
)

TEXT = chapter(
    "Text: in records, branches, commits and descriptions",
    """
text of one kind in every string and key of a record, a verdict and a failure
    → text, never Markdown, HTML or anything hidden
    attacks/test_text.py::test_it_is_inert_everywhere[*]
random mixtures of such texts in the comment → the structure of the comment is the same as with harmless text
    ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment
the same on the page and in its pictures → no element, attribute or style of its own
    ci/report/test_page.py::test_no_text_of_a_record_becomes_an_element_of_the_page
a finding of compute-sanitizer in a workflow's file, in another folder, or outside of the repository
    → no annotation; the comment names it as text
    ci/github/test_annotations.py::test_a_finding_elsewhere_than_in_a_kernels_source_has_no_place
characters that are invisible, reorder or stack → shown by their code points
    ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment
the marker of the bot in a text → the marker stands once, at the end
    ci/document/test_render.py::test_no_text_of_a_record_does_anything_in_a_comment
a text of 70,000 characters → cut before it fills the comment
    ci/document/test_render.py::test_long_strings_are_cut_before_they_fill_the_comment
many long texts → the verdict stays
    ci/document/test_render.py::test_many_long_strings_leave_the_verdict_standing
a link to what is no address → its text
    ci/document/test_escape.py::test_a_link_to_what_is_no_address_is_its_text
the page loads or runs something → forbidden by the page itself
    ci/report/test_page.py::test_the_page_needs_nothing_but_itself
control sequences for a terminal → printed as their code points
    ci/document/test_render.py::test_no_text_of_a_record_steers_the_terminal
hostile branch, title, description, claim, host and device over the wire → inert in comment and summary
    ci/github/test_publish.py::test_text_of_a_stranger_is_inert_wherever_it_comes_from
hostile output of the compiler → inert
    ci/github/test_publish.py::test_compiler_output_is_inert
a hostile name of a job and of a step → inert
    ci/github/test_publish.py::test_a_job_name_of_a_fork_is_inert
an address of the page that is none → links nowhere
    ci/github/test_publish.py::test_an_address_that_is_none_links_nowhere
orders to the runner in what is logged → broken up
    ci/github/test_actions.py::test_the_log_gives_no_commands
a line break in an output of a step → refused
    ci/github/test_actions.py::test_an_output_cannot_bring_another
a description of 262 kB in one line, against the regular expressions → read in time
    ci/github/test_description.py::test_a_line_without_an_end_is_read_all_the_same
the bot's marks in a description, around a claim and a hypothesis of one's own → neither is read there
    ci/github/test_description.py::test_what_the_bot_wrote_is_no_claim_and_no_hypothesis
10,000 marks of the bot without an end → read in time
    ci/github/test_results_block.py::test_marks_without_an_end_are_read_in_time
hostile text in a compiler's warning, in comment and annotation → inert; only lines of changed files bear an annotation
    ci/report/test_compiler_warnings.py::test_a_strangers_text_stays_text
a line table that names another file of the machine, for its lines to be quoted on the page
    → only the commit's own sources are quoted
    bench/explain/test_quoted_lines.py::test_a_line_table_that_names_another_file_gets_nothing_of_it[*]
a description of many sections and claims → read to its end, claims counted
    ci/github/test_description.py::test_a_huge_description_is_read_to_its_end
    """,
)

ARCHIVES = chapter(
    "Archives and JSON",
    """
an archive of another kind → refused whole
    attacks/test_archives.py::test_an_archive_of_another_kind_is_refused[*]
JSON of another kind → refused
    attacks/test_archives.py::test_json_of_another_kind_is_refused[*]
a member of another name → refused
    ci/github/test_untrusted_artifact.py::test_any_other_name_is_refused[*]
a name with something behind a NUL → refused
    ci/github/test_untrusted_artifact.py::test_a_name_with_something_behind_a_nul_is_refused
a symbolic link, a device, a pipe or a folder → refused
    ci/github/test_untrusted_artifact.py::test_links_and_special_files_are_refused
one name twice → refused
    ci/github/test_untrusted_artifact.py::test_one_name_twice_is_refused
an encrypted member → refused
    ci/github/test_untrusted_artifact.py::test_an_encrypted_file_is_refused
damaged content → refused
    ci/github/test_untrusted_artifact.py::test_damaged_content_is_refused
an archive over 16 MiB → refused unread
    ci/github/test_untrusted_artifact.py::test_a_large_archive_is_refused_unread
other bytes than were uploaded → not taken
    ci/github/test_fetch.py::test_other_bytes_than_were_uploaded_are_not_taken
keys that the schema does not know, with orders to the runner → refused in one line
    ci/github/test_untrusted_artifact.py::test_unknown_keys_are_refused_in_a_line_of_their_own
a failure note that does not fit → refused
    ci/github/test_untrusted_artifact.py::test_a_failure_note_that_does_not_fit_is_refused
the token follows to the host that stores artifacts → it does not
    ci/github/test_fetch.py::test_the_token_goes_to_github_only
    """,
)

IDENTITY = chapter(
    "Identity: of which run, commit and pull request",
    """
a record of another pull request, head, base, repository, run or of a later attempt → refused
    ci/github/test_untrusted_artifact.py::test_a_record_of_something_else_is_refused
builds of other commits inside a record → refused
    ci/github/test_untrusted_artifact.py::test_builds_of_other_commits_are_refused
a pull request that GitHub does not know of this run → refused
    ci/github/test_untrusted_artifact.py::test_a_pull_request_that_github_does_not_know_is_refused
a fork's branch of the same name → another pull request
    ci/github/test_fetch.py::test_another_branch_of_the_same_name_is_not_meant
two pull requests with one head → neither is judged, the check fails
    ci/github/test_publish.py::test_a_commit_of_two_pull_requests_passes_for_neither
a success against an old base, retargeted while the new run waits → the check waits, the label goes
    attacks/test_retarget.py::test_a_retargeted_pull_request_does_not_merge_on_its_old_success[*]
the waiting ends with a verdict → the verdict of that run
    attacks/test_retarget.py::test_the_verdict_of_the_new_run_ends_the_waiting[*]
retarget, and let the new run end without a verdict → the failure is repeated
    attacks/test_retarget.py::test_the_waiting_lifts_no_failure[*]
close and open, so that a run is replaced → it waits no longer
    attacks/test_retarget.py::test_a_run_that_another_replaced_does_not_wait_for_ever
a replaced run between a failure and a run without a verdict → the failure stands
    attacks/test_retarget.py::test_a_replaced_run_hides_no_failure_from_the_next
edit the description before anything was measured → the check asks for an action, and passes nothing
    attacks/test_retarget.py::test_what_was_never_measured_neither_waits_nor_passes
edit the description while it is measured → the check waits for the measurement
    attacks/test_retarget.py::test_an_edit_while_it_is_measured_waits_for_the_measurement
close the pull request or delete its branch while it is measured → the check neither waits nor passes
    attacks/test_retarget.py::test_what_is_gone_waits_for_nothing[*]
edit the description while a command measures → the command's result is the newer one
    attacks/test_retarget.py::test_a_commands_result_is_newer_than_an_edited_description
retarget, and cancel or edit → the failure stands
    ci/github/test_publish.py::test_a_run_without_a_verdict_takes_no_failure_back[*]
the bot's marker in a stranger's comment → not taken for the bot's
    ci/github/test_client.py::test_a_marker_copied_by_somebody_else_is_not_ours
the bot's marker inside its own text → not taken for the state
    ci/github/test_client.py::test_a_marker_inside_our_own_text_is_not_the_state
a check run of another App with our name and mark, of a run far in the future → not taken for ours
    attacks/test_check_of_an_app.py::test_a_check_run_of_somebody_else_is_not_ours
a job of the pull request with the name of the check
    → the ruleset can require the check of an App of one's own, whose token posts
    attacks/test_check_of_an_app.py::test_the_apps_token_posts
a change to the workflows, renamed or not → seen, and not judged
    ci/github/test_fetch.py::test_a_change_to_the_workflows_is_seen
a change too large for GitHub to list → treated as one to the workflows
    ci/github/test_fetch.py::test_a_change_too_large_to_list_could_hide_anything
    """,
)

COMPLETENESS = chapter(
    "A record that says less, or something else, than was planned",
    """
two GPUs, of which one left no record → held
    attacks/test_incomplete.py::test_of_two_gpus_one_left_no_record[faster]
two GPUs, of which one is slower and the other left no record → the regression blocks
    attacks/test_incomplete.py::test_of_two_gpus_one_left_no_record[slower]
a label that the policy does not have, alone or beside an honest record
    → refused; what the honest record shows still blocks
    attacks/test_incomplete.py::test_an_invented_label_proves_nothing[*]
a record of another device under the label l4 → refused where it names another capability, open where it names none
    attacks/test_incomplete.py::test_a_record_of_another_device_passes_for_no_gpu[*]
a regression in a record that names no capability → it blocks
    attacks/test_incomplete.py::test_a_regression_on_a_device_that_is_not_told_blocks
a case missing, too few processes, no fuzzing, a run that ended early → held, with a sentence each
    ci/github/test_assemble.py::test_what_is_missing_keeps_the_check_open
a regression, and a case missing → it blocks
    ci/github/test_assemble.py::test_a_regression_blocks_although_a_case_is_missing
a record that brings its own plan → held against the default branch's
    ci/github/test_assemble.py::test_the_plans_own_hash_is_believed_and_not_the_records
a card that the default branch does not have, which calls itself the default branch's → decides nothing
    ci/github/test_assemble.py::test_a_card_that_the_default_branch_does_not_have_decides_nothing_whatever_it_says
one library on both sides of one card, for the sake of another → held
    ci/github/test_assemble.py::test_one_library_of_one_card_passes_for_no_other
a later artifact of the same label and attempt, faster or slower than the first
    → the first is judged, and nothing passes
    attacks/test_incomplete.py::test_a_later_artifact_of_the_same_attempt_replaces_nothing
the artifact of an attempt that is not there yet → refused; the regression of this attempt blocks
    attacks/test_incomplete.py::test_an_attempt_that_is_not_there_yet_replaces_nothing
the artifact of a later attempt, as a control → it counts
    attacks/test_incomplete.py::test_the_artifact_of_a_later_attempt_counts
a failure note beside a regression of the same attempt → the regression blocks
    attacks/test_incomplete.py::test_a_note_beside_a_record_of_the_same_attempt_hides_nothing
artifacts of many invented labels over a regression → the regression blocks; 16 are downloaded
    attacks/test_incomplete.py::test_junk_buries_no_regression[*]
40 artifacts of the same label over a regression → the regression blocks
    attacks/test_incomplete.py::test_junk_of_the_same_label_buries_no_regression
a failure note that blames the runner for a step that tries the author's code
    → nobody is blamed, and nothing passes: action required
    attacks/test_incomplete.py::test_a_note_does_not_outweigh_what_github_says[*]
a clean record over a fuzz step that GitHub says failed → action required
    attacks/test_incomplete.py::test_a_record_that_says_nothing_of_a_failed_fuzz_step_does_not_pass
a kernel that takes the runner down on one GPU → held
    ci/github/test_publish.py::test_a_gpu_that_left_nothing_keeps_the_verdict_open
a kernel that takes the runner down before the case where it is slower → held
    ci/github/test_publish.py::test_a_record_that_was_cut_short_keeps_the_verdict_open[*]
a record without a base's commit, and another base meanwhile → refused
    attacks/test_incomplete.py::test_a_record_without_a_base_survives_no_retarget
    """,
)

EVIDENCE = chapter(
    "Forged measurements",
    """
a record that is 30% faster, of which a part is left out, contradicts itself or is not plausible
    → refused or open, and the comment says why
    attacks/test_incomplete.py::test_what_is_not_shown_does_not_pass[*]
a head 1000 times as fast where neither work nor GPU is known
    → held: more than 100 times as fast as base and reference is not plausible
    attacks/test_incomplete.py::test_what_no_roof_shows_the_reference_does
a reference that is absent, and a note that excuses it → excused only where the device's roof is known
    attacks/test_incomplete.py::test_a_reference_that_could_not_be_timed_is_excused_where_the_roof_is_known
a process pasted several times → refused
    ci/judge/test_duplicate_samples.py::test_a_process_pasted_twice_is_refused_by_name
a stretch of times pasted elsewhere → refused
    ci/judge/test_duplicate_samples.py::test_a_stretch_is_found_wherever_it_stands
samples of zero, below zero, NaN, Infinity, texts, null, numbers of 5,000 digits → refused
    ci/github/test_untrusted_artifact.py::test_numbers_that_are_none_are_refused
    """,
)

RESOURCES = chapter(
    "A record that stops the report or makes it slow",
    """
numbers that no measurement gives → refused; a check is posted
    attacks/test_crafted.py::test_numbers_that_no_measurement_gives_are_refused[*]
a record that once stopped the report, after a success → held takes the success's place
    attacks/test_crafted.py::test_a_crafted_record_leaves_no_old_success
a record that makes kernelgate stumble, wherever that is → refused in one sentence; a check is posted
    attacks/test_crafted.py::test_a_record_that_makes_us_stumble_is_refused_and_a_check_is_posted[*]
a record that makes kernelgate stumble, beside a regression on another GPU → the regression blocks
    attacks/test_crafted.py::test_a_regression_blocks_beside_a_record_that_makes_us_stumble
250 cases, or 8 processes of a case, of a plan that asks for 2 → not judged
    attacks/test_crafted.py::test_more_than_the_plan_warrants_is_not_judged[*]
any mutation of honest records: parts deleted, doubled, replaced by extreme numbers and words → judged or refused
    attacks/test_crafted.py::test_no_record_makes_us_stumble
lists without an end: profiles, builds, notes → refused
    ci/github/test_untrusted_artifact.py::test_lists_without_an_end_are_refused
processes and fuzz results without an end → refused
    ci/github/test_untrusted_artifact.py::test_processes_and_fuzz_results_without_an_end_are_refused
400,000 cases, 200,000 keys → refused at once
    ci/github/test_untrusted_artifact.py::test_many_keys_and_many_cases_are_refused_at_once
many cards and many axes → refused
    ci/github/test_untrusted_artifact.py::test_many_cards_and_many_axes_are_refused
    """,
)

COMMANDS = chapter(
    "Commands, approvals and events",
    """
a stranger, somebody who may only read, or only triage → refused politely, nothing runs
    ci/github/test_command.py::test_a_stranger_is_refused_politely
somebody who is no collaborator → refused
    ci/github/test_command.py::test_who_is_no_collaborator_at_all_is_refused
a stranger with a bad command → learns no more
    ci/github/test_command.py::test_a_stranger_learns_no_more_from_a_bad_command
many commands of a stranger → one comment
    ci/github/test_command.py::test_many_refusals_are_one_comment
a bot, an edited comment, an issue, no command → ignored
    ci/github/test_command.py::test_what_is_no_command_is_ignored
texts that are nearly a command → ignored
    ci/github/test_command.py::test_other_comments_are_not
unknown verbs → answered with the known ones
    ci/github/test_command.py::test_unknown_verbs_get_the_known_ones
shell text in place of a case → refused, reaches no shell
    ci/github/test_command.py::test_shell_text_is_no_case
too many cases → refused
    ci/github/test_command.py::test_too_many_cases_are_refused
a push after the command → not measured
    ci/github/test_command.py::test_what_was_pushed_since_is_not_measured
a commit that a fork took back and put back → not measured
    ci/github/test_command.py::test_a_commit_that_a_fork_took_back_and_put_back_is_not_measured
a fork that was deleted → not measured
    ci/github/test_command.py::test_a_fork_that_is_gone_is_not_measured
a command on a closed pull request → refused
    ci/github/test_command.py::test_a_closed_pull_request_is_not_measured
a command by an App that acts for a maintainer → not run: the comment is the App's
    attacks/test_commands.py::test_an_app_that_acts_for_a_maintainer_commands_nothing[*]
a command on a locked conversation
    → run, since only people with write access can comment there; its answer stands in the summary
    attacks/test_commands.py::test_a_locked_conversation_is_commanded_by_those_who_may_write
approvals that are missing or of another environment → not admitted
    ci/github/test_admit.py::test_a_fork_that_nobody_approved_is_not
a commit pushed after the approval → not admitted
    ci/github/test_admit.py::test_a_commit_pushed_after_the_approval_is_not
another commit than the run is about → not admitted
    ci/github/test_admit.py::test_another_commit_than_the_runs_is_not
events that a fork's workflow may choose → asked the same as a pull request
    ci/github/test_admit.py::test_events_that_a_forks_workflow_may_choose_are_asked_the_same[*]
events that nobody knows → not admitted
    ci/github/test_admit.py::test_unknown_events_are_not
shell text in any input of a dispatch → refused
    ci/github/test_plan.py::test_shell_text_in_any_input_is_refused
a fork that names its concurrency group like a report's, to cancel it
    → its commit changes a workflow, so it is not judged and has no success that could stay
    ci/github/test_publish.py::test_a_change_to_the_workflows_is_not_judged
a stranger asks for a search, often, on a pull request or in an issue → refused, in one comment
    ci/github/test_bisect_request.py::test_a_stranger_starts_no_search_and_many_refusals_are_one_comment[*]
a search of a fork's commit that nobody offered, of commits of elsewhere, or with shell text for them
    → refused with the reason, reaches no shell
    ci/github/test_bisect_request.py::test_other_commits_and_shell_text_are_refused
shell text in an input of a search's dispatch → refused before anything is searched
    workflows/test_end_to_end.py::test_shell_text_in_an_input_of_a_search_is_never_run[*]
an option of a search that a comment may not give → named, nothing runs
    ci/github/test_bisect_request.py::test_what_cannot_be_read_is_named
a push after a search was asked for → not searched
    ci/github/test_bisect_request.py::test_what_was_pushed_since_is_not_searched
a pull request's own workflow calls the search → skipped: neither a comment nor a dispatch
    workflows/test_workflows.py::test_a_search_is_started_by_a_comment_or_a_dispatch_alone[*]
a pull request's card says that its wrong results are right while a commit is searched
    → the default branch's cards are there
    workflows/test_workflows.py::test_the_cards_of_a_search_are_the_default_branchs
a search's machine hands out an answer that is none → refused in a sentence; nothing of it is believed
    ci/github/test_bisect_answer.py::test_an_answer_that_is_not_one_is_refused_in_a_sentence[*]
Markdown, HTML, mentions and the bot's own marker in an answer of any kind → text in a code span
    ci/github/test_bisect_answer.py::test_hostile_words_of_an_answer_stay_words
a command to repeat that the answer wrote → not shown: the bot writes its own
    ci/github/test_bisect_answer.py::test_a_fuzz_case_and_a_compile_have_theirs
a link in place of the answer's file → not followed
    ci/github/test_bisect_answer.py::test_a_link_in_place_of_the_answer_is_not_followed
the last line of the bot's comment in somebody else's → left alone
    ci/github/test_bisect_answer.py::test_one_comment_is_begun_and_becomes_the_answer
    """,
)

REVIEWS = chapter(
    "Sessions that experts review",
    """
a stranger answers a session, often, also on a pull request that is closed
    → refused, in one comment; the job that may push is not started
    ci/lab/test_review.py::test_only_people_with_write_access_are_answered_with_a_pull_request[*]
the same through the workflow → the job with the write token is skipped
    workflows/test_end_to_end.py::test_a_strangers_answer_to_a_session_gets_no_further_than_a_refusal
text that breaks out of a pattern's front matter, HTML, mentions, links, orders to the runner
    → text in a code span; the front matter has its own lines alone
    ci/lab/test_review.py::test_hostile_text_in_a_pattern_stays_text
a path in place of a pattern's name, another line beside it → refused
    ci/lab/test_review.py::test_what_is_none_is_refused
shell text in a reviewer's pattern → reaches no shell
    workflows/test_end_to_end.py::test_a_reviewers_pattern_becomes_a_pull_request_and_the_other_workflow_is_silent
hostile text in every text of a session's log that is submitted → text in code spans; the bot's last line stands once
    ci/lab/test_submit.py::test_hostile_text_of_a_log_stays_text
a log of hundreds of long texts → what fits is shown, the rest counted, and questions and forms stay
    ci/lab/test_submit.py::test_a_long_log_fits_and_what_is_left_out_is_counted
somebody's issue with the last line of the bot's → left alone
    ci/lab/test_submit.py::test_somebody_elses_issue_with_the_same_last_line_is_none_of_ours
    """,
)

ACCEPT = chapter(
    "Accepted regressions",
    """
somebody without write access accepts a regression → refused in a sentence; it blocks
    attacks/test_accept.py::test_who_may_not_write_accepts_nothing[*]
the command by a bot, by an App in a person's name, quoted, or elsewhere than on the first line → no command
    attacks/test_accept.py::test_what_is_no_command_of_a_person_accepts_nothing[*]
another workflow repeats a stranger's command in the bot's name, and the label is set by hand
    → it blocks; the label goes
    attacks/test_accept.py::test_what_the_bot_is_made_to_say_accepts_nothing
a check run `kernelgate accepted` by another App → it blocks
    attacks/test_accept.py::test_it_ends[a check run of another App]
a check run of ours whose text is damaged → it blocks
    attacks/test_accept.py::test_it_ends[*[tm]*[xa]*]
the comment is edited or deleted before it is read → it blocks
    attacks/test_accept.py::test_it_is_refused[comment*]
the comment is edited or deleted afterwards → it blocks
    attacks/test_accept.py::test_it_ends[comment*]
a push after the acceptance → it blocks again, and the label goes
    attacks/test_accept.py::test_it_ends[a push]
another base after the acceptance → it blocks again
    attacks/test_accept.py::test_it_ends[another base]
a push just before the comment, so that it means another commit than was looked at → refused: that commit has no verdict
    attacks/test_accept.py::test_it_is_refused[pushed just before]
the same, measured before the comment is read → refused: the verdict came after the comment
    attacks/test_accept.py::test_it_is_refused[measured before*]
a fork pushes after the comment, before it is read → refused
    attacks/test_accept.py::test_it_is_refused[pushed since]
acceptance while the commit is measured again → refused
    attacks/test_accept.py::test_it_is_refused[measured again]
acceptance where the pull request rewrites its own measurement → nothing to accept; the check waits for somebody
    attacks/test_accept.py::test_it_is_refused[rewrites*]
acceptance of a wrong result → refused: only speed can be accepted
    attacks/test_accept.py::test_it_is_refused[wrong result]
a wrong result after an acceptance of the same commit → it blocks
    attacks/test_accept.py::test_it_ends[a wrong result]
acceptance of one case where another one is slower, too → that one blocks
    attacks/test_accept.py::test_what_nobody_accepted_blocks_still
acceptance where the description is incomplete → it blocks
    attacks/test_accept.py::test_an_incomplete_description_blocks_still
acceptance after a run that timed the accepted case alone, and an earlier failure of both → the earlier failure stands
    attacks/test_accept.py::test_it_ends_no_earlier_failure_where_something_is_in_doubt
acceptance when the records, or the run, are gone → refused; comment and check stay
    attacks/test_accept.py::test_it_is_refused[* gone]
Markdown, HTML, a mention and the bot's marker as the reason → text
    attacks/test_accept.py::test_a_reason_is_inert
any acceptances of any commits beside any evidence, against the gate
    → no success that was none, no blocker lifted but a regression's, nothing of another commit or case
    ci/judge/test_accepted.py::test_an_acceptance_only_ever_takes_a_regression_from_what_blocks
a baseline after a merge that was not accepted as it was merged → not offered
    ci/github/test_acceptances.py::test_what_was_not_accepted_stops_it[*]
a second slowdown behind one that was accepted, on its way into the baseline → not offered
    ci/github/test_acceptances.py::test_what_else_is_slower_stops_it
    """,
)

BUILD = chapter(
    "The build",
    """
a source whose name a command line or ninja would take for something else → refused, naming it
    bench/build/test_recipe_sources.py::test_a_source_with_an_odd_name[*]
a file of a package with an odd name → refused, naming it
    attacks/test_build.py::test_a_file_of_a_package_with_an_odd_name[*]
a source that is a link out of the repository → refused, naming the link
    bench/build/test_recipe_sources.py::test_a_link_out_of_the_repository_is_not_followed[*]
a file of a package that is a link out of the repository → refused, naming the link
    attacks/test_build.py::test_a_link_out_of_a_package[*]
a pattern of the card that leads out of the repository → refused
    bench/build/test_recipe_sources.py::test_a_pattern_that_names_nothing
an include of a file outside of the repository, such as /etc/passwd → refused, naming file and line
    bench/build/test_recipe_sources.py::test_an_include_from_outside_of_the_repository[*]
an include that a macro names, so that the compiler quotes a file of the machine → the file is named and not quoted
    bench/build/test_compiler_output.py::test_what_stands_in_a_file_of_the_machine_is_not_quoted[*]
a command to the workflow in what a compiler prints → printed so that it is none
    bench/system/test_progress.py::test_what_is_printed_is_no_command_to_a_workflow[*]
a command to the workflow in the error that ends the build → printed so that it is none
    attacks/test_build.py::test_an_error_of_a_compiler_is_no_command_to_the_workflow
a flag of the card with shell or ninja syntax → one word of the compiler's command line
    bench/build/test_recipe.py::test_a_flag_of_a_card_is_one_word[*]
build.ninja, sitecustomize.py, torch.py and the like beside the sources → not copied to where sources are compiled
    attacks/test_build.py::test_what_steers_a_build_is_no_source
a hook of the repository → does not run
    bench/system/test_git.py::test_worktree_runs_no_hook
a filter that the commit's attributes name → does not run
    attacks/test_build.py::test_a_filter_that_a_commit_names_does_not_run
a submodule → as far as the checkout has it; nothing is fetched
    bench/system/test_git.py::test_worktree_without_the_submodule_that_the_checkout_lacks
an error whose words are those of a machine that breaks down → the author's all the same
    bench/build/test_compiler_output.py::test_the_sources_are_at_fault_where_a_compiler_names_a_place_in_them[words*]
a library other than what the sources make, passed off as theirs
    → a build of the same sources anywhere gives the same bytes
    bench/build/test_reproducible.py::test_two_builds_for_the_cpu
the same, of code for a GPU → the same bytes
    bench/build/test_reproducible.py::test_two_builds_for_a_gpu
the same, of a package → the same bytes
    bench/kernel/test_triton_build.py::test_two_builds_are_the_same_bytes
    """,
)

BASELINE = chapter(
    "The baseline's offer",
    """
a forged record on its way to become the baseline → refused
    attacks/test_baseline_offer.py::test_a_forged_record_is_no_baseline[*]
any commit as the head → the commit is that of the run
    attacks/test_baseline_offer.py::test_the_commit_is_the_runs
orders to the runner in a key → neither in the log nor in the error
    attacks/test_baseline_offer.py::test_a_key_is_no_order_to_the_runner
Markdown in texts of the record → inert in the pull request's body
    attacks/test_baseline_offer.py::test_no_text_of_a_record_is_markdown_in_the_pull_request
a baseline that lies outside of the repository → refused
    ci/github/test_baseline_pr.py::test_what_cannot_be_a_baseline_is_refused
a measurement that was cut short, or that lacks a case → refused
    ci/github/test_baseline_pr.py::test_a_measurement_that_was_cut_short_is_no_baseline
a push to the default branch → never: it is a pull request
    ci/github/test_baseline_pr.py::test_nothing_reaches_the_default_branch
    """,
)

NATIVE = chapter(
    "Code of the kernel that runs on the runner",
    """
from a kernel's process, where bubblewrap can be used → refused
    attacks/test_native.py::test_an_isolated_process_cannot[*]
the runner's variables and tokens in the environment of a kernel → not there
    bench/system/test_worker.py::test_a_child_is_told_neither_where_the_runner_takes_orders_from_nor_secrets[*]
a runner where bubblewrap cannot be used → measured with the runner's rights, and said
    bench/system/test_isolation.py::test_a_runner_that_cannot_isolate_measures_and_says_why[*]
a folder of libraries that was changed after it was built → refused before anything is loaded
    bench/build/test_library.py::test_a_folder_that_was_changed_after_it_was_built_is_refused[*]
a workflow that gives no digest → refused
    bench/build/test_library.py::test_a_digest_that_nobody_gave_is_refused
a step that would measure a library without its digest → there is none
    attacks/test_native.py::test_no_step_measures_a_library_that_is_not_the_one_that_was_built
the base's library, changed while the head is built → its digest is known before
    attacks/test_native.py::test_the_bases_digest_is_known_before_the_head_is_built
a folder `kernelgate` in the checkout that stands in for the measuring code → not imported
    bench/system/test_worker.py::test_the_current_folder_cannot_stand_in_for_the_package
output that looks like messages → not taken for any
    bench/system/test_worker.py::test_lines_go_both_ways_and_prints_do_not_mix_in
a library that gains by cheating: memory, work left out or done later, clocks, the other side, messages → never faster
    cheats/test_cheats.py::test_a_library_that_cheats[*]
a package that gains by cheating → never faster
    cheats/test_cheats.py::test_a_package_that_cheats[*]
the same code without a cheat → not accused
    cheats/test_cheats.py::test_the_same_code_without_a_cheat_is_not_accused[*]
    """,
)

WORKFLOWS = chapter(
    "The workflows and what they install",
    """
a pull request changes the check of its own description, its policy or the action that sets it up
    → held to what was merged
    workflows/test_checks.py::test_a_pull_request_that_changes_the_template_check_is_held_to_the_one_that_was_merged
a fork edits a workflow to run on the GPU → the job is never started
    workflows/test_install_page.py::test_the_settings_let_nobody_in_unasked
a fork edits a workflow to get a write token → GitHub gives it a token that can only read
    workflows/test_install_page.py::test_the_settings_let_nobody_in_unasked
a fork changes what measures and judges → built, measured and judged by the default branch
    workflows/test_end_to_end.py::test_a_forks_changes_to_the_judge_do_not_judge
a pull request relaxes the policy → judged by the default branch's
    workflows/test_end_to_end.py::test_another_repository_only_calls_as_the_install_page_says
a run of a fork, by each event that a fork's workflow may choose → waits until a maintainer approves it
    workflows/test_workflows.py::test_a_forks_run_waits_for_approval[a*fork*]
an environment without reviewers → not admitted
    workflows/test_end_to_end.py::test_an_environment_that_nobody_protected_lets_nobody_in
an event of another form than GitHub's → refused in a sentence that names the place
    ci/github/test_actions.py::test_an_event_of_another_form_is_refused_and_the_place_named[*]
a workflow that runs a pull request's code and may write → there is none
    workflows/test_workflows.py::test_what_runs_a_pull_requests_code_can_only_read[*]
a write token beside a pull request's files or a library → there is none
    workflows/test_workflows.py::test_a_write_token_never_meets_a_pull_requests_files
pull_request_target → used nowhere
    workflows/test_workflows.py::test_pull_request_target_is_used_nowhere
a caller of a workflow chooses what is checked out → its own commit is
    workflows/test_workflows.py::test_measuring_code_is_the_called_workflows_own
text of an event inside a script of a workflow → there is no expression in any script
    workflows/test_workflows.py::test_zizmor_is_really_asked[injected]
the tag of an action is moved to other code → every action is pinned to a full commit
    workflows/test_workflows.py::test_zizmor_is_really_asked[another*]
a library for the base, under the name and for the commit of the default branch's own
    → not taken: only runs that a push to the default branch or a schedule started hand one over
    ci/github/test_trusted_runs.py::test_what_another_run_left_is_not_taken[*]
an index of the history, under the name of the default branch's own and left later → not taken, by the same rule
    ci/github/test_trusted_runs.py::test_one_that_somebody_else_left_is_not_taken[*]
what is no index, or an archive of another kind, as the default branch's own index → left; nothing is written
    ci/github/test_trusted_runs.py::test_what_is_no_index_is_left[*]
a poisoned library through the workflows, with an honest key and other code → the base is compiled
    workflows/test_reuse.py::test_a_poisoned_library_of_a_pull_request_is_not_the_base
an archive of libraries of another kind → left; nothing is written outside
    ci/github/test_trusted_runs.py::test_an_archive_of_another_kind_is_left[*]
a cache carries files from an untrusted run into a trusted one → there is no cache
    workflows/test_workflows.py::test_it_has_no_fault[caches]
a token left in a checkout, for what runs there → no checkout keeps it
    workflows/test_workflows.py::test_zizmor_is_really_asked[a token*]
a fault of a workflow that zizmor knows → found; 31 lines and one rule are passed over, each with its reason
    workflows/test_workflows.py::test_zizmor_is_really_asked[*]
an exception for zizmor without a reason, or one more than there are → the tests fail
    workflows/test_workflows.py::test_every_exception_for_zizmor_gives_its_reason_and_they_are_few
a version that was taken over is offered on the day of its release → dependabot waits a week
    workflows/test_workflows.py::test_dependabot_waits_before_it_offers_a_version
a package of the judge with the right version and other content → not installed
    attacks/test_installed.py::test_a_package_with_other_content_is_not_installed
an index, an option or a package without a hash among the judge's packages → the tests fail
    attacks/test_installed.py::test_the_lock_has_the_versions_of_the_constraints
a package that a package of the judge needs and nobody pinned → the tests fail
    attacks/test_installed.py::test_the_lock_holds_what_judging_needs_and_nothing_else
a source distribution, whose build fetches and runs what has no hash → wheels alone are installed
    attacks/test_installed.py::test_the_judges_packages_are_installed_by_their_hashes_alone
a job with a write token that installs something else → there is none
    attacks/test_installed.py::test_a_job_that_may_write_installs_by_hashes_alone
a module in the checkout with the name of another → not imported
    attacks/test_checkout.py::test_a_module_in_the_checkout_stands_in_for_no_other
inputs of every reader of untrusted bytes that fuzzing found or that reach far
    → read, or refused in a sentence, and soon
    fuzzing/test_readers.py::test_what_once_was_found_is_read_or_refused_in_a_sentence[*]
what hypothesis makes of them → read, or refused in a sentence, and soon
    fuzzing/test_readers.py::test_what_is_made_of_it_is_read_or_refused_in_a_sentence[*]
a profiler report that makes NVIDIA's reader abort → refused in a sentence
    ci/explain/test_analyze.py::test_a_report_that_ends_nvidias_reader_is_one_sentence
    """,
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
