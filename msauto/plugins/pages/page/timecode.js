"use strict";
// Exact time code: as msauto/model/timecode.py. A rate is [numerator, denominator]; frames are whole numbers.

const DROPPED_PER_MINUTE = { "30000/1001": 2, "60000/1001": 4 };

/** Whole quotient; exact for every position that a plan can hold. */
const div = (number, by) => (number - (number % by)) / by;

/** The frames per second that a time code counts: 30 for 30000/1001. */
const nominalRate = ([numerator, denominator]) => Math.ceil(numerator / denominator);

/** The frame numbers that drop frame omits at the start of a minute; 0 for a rate without drop frame. */
const droppedPerMinute = (rate) => DROPPED_PER_MINUTE[rate.join("/")] ?? 0;

/** How many frame numbers drop frame omits before a frame. */
function droppedBefore(frames, nominal, perMinute) {
  const tenMinutes = 600 * nominal - 9 * perMinute;
  const minute = 60 * nominal - perMinute;
  const rest = frames % tenMinutes;
  const before = 9 * perMinute * div(frames, tenMinutes);
  return rest < 60 * nominal ? before : before + perMinute * (div(rest - 60 * nominal, minute) + 1);
}

/** HH:MM:SS:FF, or HH:MM:SS;FF at a rate with drop frame; the number of frames where the rate is not known. */
function showTimecode(frames, rate) {
  if (!rate) return String(frames);
  const nominal = nominalRate(rate);
  const perMinute = droppedPerMinute(rate);
  const number = perMinute ? frames + droppedBefore(frames, nominal, perMinute) : frames;
  const two = (value) => String(value).padStart(2, "0");
  const seconds = div(number, nominal);
  const frame = String(number % nominal).padStart(Math.max(2, String(nominal - 1).length), "0");
  const clock = [div(seconds, 3600), div(seconds, 60) % 60, seconds % 60].map(two).join(":");
  return clock + (perMinute ? ";" : ":") + frame;
}

/** The frame of a frame number of the time code; of one that drop frame omits, the first frame after it. */
function frameOfNumber(number, rate) {
  if (!rate || !droppedPerMinute(rate)) return number;
  const nominal = nominalRate(rate);
  const perMinute = droppedPerMinute(rate);
  const minutes = div(number, 60 * nominal);
  const inMinute = number % (60 * nominal);
  const shown = minutes % 10 && inMinute < perMinute ? number + perMinute - inMinute : number;
  return shown - perMinute * (minutes - div(minutes, 10));
}

/** The frame number of the time code that a frame has: the inverse of frameOfNumber. */
function numberOfFrame(frames, rate) {
  const perMinute = rate ? droppedPerMinute(rate) : 0;
  return perMinute ? frames + droppedBefore(frames, nominalRate(rate), perMinute) : frames;
}

/** The steps of a ruler in frame numbers, small to large. */
function rulerSteps(rate) {
  const second = rate ? nominalRate(rate) : 25;
  const frames = [1, 2, 5, 10].filter((step) => step < second);
  const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  return [...frames, ...seconds.map((each) => each * second)];
}
