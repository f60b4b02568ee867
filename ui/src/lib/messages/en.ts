// Labels only. The sentences about the node's state come from the node, in the owner's language.

export const en = {
  pause: "Pause",
  serveAnyway: "Serve anyway",
  serveAnywayAsk: "Serving takes the GPU beside what runs now, until that ends.",
  cancel: "Cancel",
  resume: "Resume",
  nothingToPress: "Nothing to do",
  refusedTitle: "Not done",
  noAnswer: "Wakati did not answer. Nothing was changed.",

  ribbon: "Tokens per second",
  ribbonNow: (now: string, peak: string) => `${now} now, ${peak} at the peak of the last minute`,
  ribbonIdle: "None in the last minute",
  ribbonMeasuring: "Measuring",
  ribbonAgo: "60 s ago",
  ribbonRightNow: "now",
  showNumbers: "Show numbers",
  secondsAgo: "Seconds ago",

  figures: "Earnings and work",
  today: "Today",
  month: "This month",
  jobs: "Jobs today",
  served: "Served today",
  servedFor: (hours: string, minutes: string) => (hours === "0" ? `${minutes} min` : `${hours} h ${minutes} min`),
  percent: (value: string) => `${value}%`,
  unknown: "Not known yet",

  machine: "This machine",
  noGpu: "No supported GPU",
  vram: "GPU memory",
  vramOurs: "Wakati",
  vramOthers: "others",
  vramFree: "free",
  temperature: "Temperature",
  celsius: (value: string) => `${value} °C`,
  power: "Power",
  watts: (value: string) => `${value} W`,
  utilisation: "GPU use",
  worker: "Model process",
  sandbox: "Model process is kept from",
  denied: { files: "other files", writes: "writing", network: "the network", exec: "other programs" },
  deniedNothing: "nothing: this system does not confine it",

  handOver: "Last hand-over",
  handOverNone: "None yet. The first game you start will be timed here.",
  handOverTo: (to: string) => `To ${to}`,
  handOverIn: (time: string) => `in ${time} s`,
  handOverLeft: (left: string) => `${left} left`,
  handOverLeftUnknown: "GPU memory cannot be measured here",
  handOverJobs: (jobs: number, count: string) => (jobs === 1 ? "1 job went on elsewhere" : `${count} jobs went on elsewhere`),

  offer: "On offer",
  noModel: "No model chosen",
  prices: (input: string, output: string) => `${input} in, ${output} out per million tokens`,
  link: "Broker",
  linkStates: {
    not_joined: "Not joined",
    dialling: "Connecting",
    joined: "Connected",
    refused: "Refused",
  },

  faults: "Needs attention",

  connecting: "Connecting to Wakati",
  goneTitle: "Wakati is not running",
  goneReason: "The window lost the program that serves. No job runs on this machine while it is gone, and nothing earned is lost.",
  goneSince: (time: string) => `Since ${time}`,
  goneStart: "Start Wakati",
};

/** Every label, so that a language with one missing does not compile. */
export type Messages = typeof en;
