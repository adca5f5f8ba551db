"""Examples of plays, tasks and modules, which together use every key; a test reads each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES, Attribute


def _values(attributes: Sequence[Attribute], separator: str) -> str:
    return separator.join(f"{each.name}: {each.example}" for each in attributes)


EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "play": (
        """\
- name: Tonight's news is ready for air
  hosts: playout:!studio-b
  database: NEWS
  vars: {episode: Evening News}
  vars_files: [shows.yml]
  serial: [1, 50%]
  max_fail_percentage: 20
  any_errors_fatal: false
  tags: [tonight]
  tasks:
    - asset: {title: "{{ episode }}", fields: {comment: Ready}}
      notify: Export the version
  handlers:
    - name: Export the version
      command: {name: PARTNER_EXPORT_VERSION}
""",
        """\
- name: What comes every night, on weekdays only
  import_playbook: more.yml
  when: now.weekday() < 5
""",
    ),
    "task": (
        """\
- name: "Promo {{ promo }}"
  asset: {title: "{{ promo }}", fields: {comment: "number {{ number }} of {{ house }}"}}
  vars: {house: Kanal 5}
  loop: [Promo 1, Promo 2]
  loop_control: {loop_var: promo, index_var: number, label: "{{ promo }}"}
  when: asset.frames > 250
  tags: [promos]
  notify: [Export the version]
""",
        """\
- name: What they share
  when: inventory_hostname is match("studio")
  block:
    - assert: {title: Long Film, that: asset.frames > 250}
    - thumbnail: {title: Long Film, dest: out/still.png}
    - proxy: {title: Long Film, profile: WP1, dest: out/film.mp4}
    - rss: {channel: ticker, items: [{guid: n-1, text: Headline}]}
    - command: {name: PARTNER_EXPORT_VERSION, title: Long Film}
    - xmp_batch: {connector: TRAFFIC, src: batch.xml}
    - import_tasks: tasks.yml
""",
    ),
    "handler": (
        """\
- name: Tell the partner before it goes
  command: {name: PARTNER_EXPORT_VERSION}
  before: true
""",
    ),
    "asset": (
        """\
- name: Describe the episode
  asset:
    title: Evening News
    was: [Evening News raw]
    folder: Raw/2026
    fields:
      """
        + _values(LINK_FIELDS, "\n      ")
        + """
    xmp: {"dc:subject": [news, evening], "dc:title": Evening News}
    segments:
      - {number: 1, start: "10:00:00:00", duration: "00:12:30:00", """
        + _values(SEGMENT_ATTRIBUTES, ", ")
        + """}
      - {number: 7, state: absent}
    markers:
      - {at: "10:12:30:00", track: Cue Point, """
        + _values(MARKER_ATTRIBUTES, ", ")
        + """}
      - {at: "10:20:00:00", title: Goal, attributes: {player: "9"}}
      - {uid: 9, state: absent}
    links:
      - folder: Playout/Tonight
        title: Evening News tonight
        """
        + _values(LINK_FIELDS, "\n        ")
        + """
      - {folder: Playout/Yesterday, state: absent}
    exactly: {segments: true, links: false, markers: {tracks: [Cue Point]}}
    origin: "10:00:00:00"
    restore: {wait: 30m}
    missing: error
    unfinalized: skip
    lossy: true
    state: present
""",
        """\
- name: Equal parts
  asset:
    id: "handle:4711"
    segmentation: {duration: "00:10:00:00", title: Part}
    exactly: [segments]
""",
        """\
- name: All promos have been looked at
  asset:
    select: {folder: Promos}
    markers: [{at: 0, track: General, title: Checked}]
""",
        """\
- name: An old promo goes, with its links
  asset: {title: Promo 1, folder: Promos, state: absent, with_links: true}
""",
    ),
    "select": (
        """\
- name: Everything raw since Friday
  asset:
    select:
      folder: Raw
      recursive: true
      created_after: 2026-11-13
      created_before: 2026-11-20T18:00:00
      created_within: 7d
      mimetype: [Video]
      where: asset.frames > 250 and asset.title is match("EP")
      expect: {min: 1, max: 500}
    markers: [{at: 0, track: General, title: Checked}]
""",
    ),
    "rss": (
        """\
- name: The ticker
  rss:
    channel: ticker
    items:
      - {guid: n-1, file: n-1.txt, text: Headline}
      - guid: n-2
        item: {title: T, description: D, link: "http://kanal5.example/2", pubDate: "2026-11-20T10:00:00+01:00"}
      - {guid: n-0, state: absent}
    exactly: true
""",
    ),
    "thumbnail": (
        """\
- name: A still
  thumbnail:
    title: Lower Third
    pos: "00:00:01:00"
    dur: "00:00:10:00"
    w: 320
    h: 180
    params: {headline: Good evening}
    dest: out/still.png
""",
        """\
- name: One by a key field
  thumbnail: {id: "handle:4711", dest: out/other.png, missing: skip}
""",
        """\
- name: One of each promo
  thumbnail: {select: {folder: Promos}, dest: "out/{{ asset.title }}.png"}
""",
    ),
    "proxy": (
        """\
- name: A viewing copy
  proxy: {title: Long Film, profile: WP1, dest: out/film.mp4}
""",
        """\
- name: Another, by a key field
  proxy: {id: "handle:4711", profile: WP2, dest: out/other.mp4, missing: skip}
""",
        """\
- name: One of each promo
  proxy: {select: {folder: Promos}, profile: WP1, dest: "out/{{ asset.title }}.mp4"}
""",
    ),
    "xmp_batch": (
        """\
- name: Load XMP from the traffic system
  xmp_batch: {connector: TRAFFIC, src: batch.xml}
""",
    ),
    "command": (
        """\
- name: Card fields, once
  command: {name: PARTNER_COPY_PROGRAM_FIELDS, title: Long Film, run: once}
""",
        """\
- name: To the folder of the card
  command:
    name: PARTNER_MOVE_TO_ASSET
    id: "handle:4711"
    params: {asset_id: "17", house_number: H-1}
    missing: skip
""",
        """\
- name: Export all that is new
  command: {name: PARTNER_EXPORT_VERSION, select: {folder: Raw, created_within: 1d}, run: always}
""",
    ),
    "assert": (
        """\
- name: The clip is long enough
  assert: {title: Long Film, that: [asset.frames > 250, asset.finalized], msg: too short}
""",
        """\
- name: So is every other
  assert: {select: {folder: Raw}, that: asset.frames > 250}
""",
        """\
- name: And this one
  assert: {id: "handle:4711", that: asset.frames > 250}
""",
    ),
}
"""By the name of the topic: lists of plays for ``play``, of tasks for all others."""
