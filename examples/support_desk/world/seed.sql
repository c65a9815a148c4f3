CREATE TABLE customers (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  address TEXT NOT NULL
);
CREATE TABLE orders (
  id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL REFERENCES customers (id),
  item TEXT NOT NULL,
  amount REAL NOT NULL,
  status TEXT NOT NULL,
  placed_on TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
-- Refunds come from several tills, and one of them writes text: the column takes what it is given.
CREATE TABLE refunds (
  id INTEGER PRIMARY KEY,
  order_id TEXT NOT NULL REFERENCES orders (id),
  amount,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  body TEXT NOT NULL
);

INSERT INTO customers VALUES
  ('C-101', 'Ana Duarte', 'ana@example.org', '4 Harbour Row, 1100 Lisbon'),
  ('C-102', 'Ben Okafor', 'ben@example.org', '19 Mill Lane, Leeds LS1 4AP'),
  ('C-103', 'Chloe Martin', 'chloe@example.org', '7 rue des Lilas, 69003 Lyon'),
  ('C-104', 'Dmitri Sokolov', 'dmitri@example.org', '22 Lindenweg, 10407 Berlin'),
  ('C-105', 'Emiko Tanaka', 'emiko@example.org', '3-8 Sakura Street, Kyoto'),
  ('C-106', 'Farid Haddad', 'farid@example.org', '51 Olive Street, Amman');

INSERT INTO orders VALUES
  ('O-1001', 'C-101', 'wool blanket', 64.0, 'delivered', '2026-01-12', '2026-01-16T10:00:00+00:00'),
  ('O-1002', 'C-102', 'desk lamp', 39.5, 'shipped', '2026-02-20', '2026-02-22T08:30:00+00:00'),
  ('O-1003', 'C-103', 'tea pot', 28.0, 'open', '2026-02-24', '2026-02-24T14:10:00+00:00'),
  ('O-1004', 'C-101', 'garden chair', 85.0, 'open', '2026-02-25', '2026-02-25T09:05:00+00:00'),
  ('O-1005', 'C-104', 'bookshelf', 120.0, 'shipped', '2026-02-18', '2026-02-21T16:45:00+00:00'),
  ('O-1006', 'C-105', 'rain coat', 72.0, 'open', '2026-02-26', '2026-02-26T11:20:00+00:00'),
  ('O-1007', 'C-103', 'table lamp', 25.0, 'delivered', '2026-02-10', '2026-02-14T13:00:00+00:00'),
  ('O-1008', 'C-106', 'set of two mugs', 19.0, 'delivered', '2026-02-08', '2026-02-12T12:15:00+00:00'),
  ('O-1009', 'C-105', 'umbrella', 32.0, 'delivered', '2026-01-28', '2026-02-02T15:40:00+00:00'),
  ('O-1010', 'C-106', 'wall clock', 48.0, 'delivered', '2026-02-11', '2026-02-15T09:50:00+00:00'),
  ('O-1011', 'C-102', 'bath towels', 44.0, 'open', '2026-02-23', '2026-02-23T17:30:00+00:00'),
  ('O-1012', 'C-102', 'door mat', 18.0, 'open', '2026-02-26', '2026-02-26T07:55:00+00:00'),
  ('O-1013', 'C-104', 'floor rug', 150.0, 'open', '2026-02-25', '2026-02-25T18:25:00+00:00'),
  ('O-1014', 'C-105', 'picture frame', 22.0, 'open', '2026-02-27', '2026-02-27T10:35:00+00:00');

INSERT INTO refunds VALUES (1, 'O-1009', 32.0, 'torn on arrival', '2026-02-05T09:00:00+00:00');
INSERT INTO outbox VALUES (1, 'emiko@example.org', 'Refund for O-1009', 'We have refunded 32.00 EUR for order O-1009.');
